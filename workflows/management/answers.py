"""Commands that answer in words or, with `--json`, with exactly one JSON object on stdout, refusals included."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any

from django.db import DatabaseError, InterfaceError

from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import Refusal
from workflows.management.base import (
    INTERRUPTED,
    REFUSED,
    WRONG_USE,
    KampongCommand,
    Stop,
    code_of,
    database_message,
)
from workflows.management.terminal import plain

_SURROGATE = re.compile("[\ud800-\udfff]")


class AnsweringCommand(KampongCommand):
    """A command that does `perform`; where it declares `--json`, refusals are answered as an object too.

    Wrong use stays text on stderr in either case.
    """

    def perform(self, **options: Any) -> int:
        """Do it; the exit code."""
        raise NotImplementedError

    def act(self, **options: Any) -> int:
        _print_what_the_terminal_cannot(sys.stdout)
        try:
            return self.perform(**options)
        except Refusal as refusal:
            if not options.get("json"):
                raise Stop(plain(refusal.message), code=code_of(refusal)) from refusal
            self.answer(self.refused(refusal.code, refusal.message, refusal.extra))
            return code_of(refusal)
        except (DatabaseError, InterfaceError) as error:
            if not options.get("json"):
                raise
            self.answer(self.refused("database", database_message(error), {}))
            return REFUSED
        except Stop as stop:
            if not options.get("json") or stop.returncode == WRONG_USE:
                raise
            interrupted = stop.returncode == INTERRUPTED
            self.answer(self.refused("interrupted" if interrupted else "not_possible", str(stop), {}))
            return stop.returncode
        except (KeyboardInterrupt, Exception) as error:
            if options.get("json"):
                interrupted = isinstance(error, KeyboardInterrupt)
                words = "Interrupted." if interrupted else f"unexpected error: {type(error).__name__}; stderr says more"
                self.answer(self.refused("interrupted" if interrupted else "unexpected", words, {}))
            raise

    def refused(self, code: str, message: str, extra: dict[str, Any]) -> dict[str, Json]:
        """The object of a refusal."""
        return {"success": False, "code": code, "error": message, **extra}

    def answer(self, value: Json) -> None:
        """The one object, in one line."""
        # A path or an option may hold bytes that are no text.
        text = jsontext.dumps(_without_surrogates(value))
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
        self.show(text if encoding.startswith("utf") else _ascii(text))

    def show_lines(self, lines: list[str]) -> None:
        """Lines of the result, on stdout."""
        if lines:
            self.show("\n".join(lines))

    def complain(self, message: str) -> None:
        """A message with data in it, on stderr."""
        self.say(plain(message))


def _print_what_the_terminal_cannot(stream: Any) -> None:
    """As escapes: a character that the terminal has not must not end a command that has just decided something."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def _ascii(text: str) -> str:
    """JSON text with the escapes of JSON for everything beyond ASCII."""
    return re.sub(r"[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], text)


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_surrogates(item) for key, item in value.items()}
    return value
