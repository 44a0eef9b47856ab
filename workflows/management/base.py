"""What all our commands share: exit codes (design 5.1), messages on stderr, one clear line for each refusal.

0 done, 1 the spec is unreadable or invalid, 2 it ran and failed, was rejected or was refused, 3 paused and left
waiting, 64 wrong use.
"""

from __future__ import annotations

import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    SystemCheckError,
    handle_default_options,
)
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connections,
)

from workflows.errors import Refusal, SpecBroken
from workflows.management.streams import let_go, open_missing
from workflows.management.terminal import to_type
from workflows.specfiles import SpecUnreadable

VERSION = "0.1.0"

DONE = 0
BAD_SPEC = 1
REFUSED = 2
WAITING = 3
WRONG_USE = 64
INTERRUPTED = 130


class Stop(CommandError):
    """End the command with this exit code, and a message on stderr unless it is empty."""

    def __init__(self, message: str = "", *, code: int = REFUSED) -> None:
        super().__init__(message, returncode=code)


class UsageError(Stop):
    """The command was called wrongly; exit 64."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=WRONG_USE)


class KampongCommand(BaseCommand):
    """A command that does `act` and ends with the exit code that it returns.

    `call_command` raises CommandError with that code as `returncode`; from the shell the process exits with it.
    """

    requires_system_checks: Any = []
    #: Whether connections are kept in a pool: for processes that stay, not for commands that end in a moment.
    pooled = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Options are never abbreviated: `--a` does not mean --approve-all."""
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def act(self, **options: Any) -> int:
        """Do it; the exit code. A Refusal, or a database that does not answer, becomes one line and its code."""
        raise NotImplementedError

    def __init__(self, *args: Any, **options: Any) -> None:
        open_missing()
        super().__init__(*args, **options)

    def get_version(self) -> str:
        """Ours, not Django's alone."""
        return f"Kampong {VERSION} (Django {super().get_version()})"

    def say(self, line: str) -> None:
        """A message for the person at the terminal, on stderr."""
        try:
            self.stderr.write(line)
            self.stderr.flush()
        except OSError:
            let_go(sys.stderr)

    def show(self, line: str) -> bool:
        """A line of the result, on stdout; whether anybody still reads it.

        A reader that left (`| head`) ends nothing: the exit code says how the work went. A disk that is full does.
        """
        try:
            self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:
            let_go(sys.stdout)
            return False
        except OSError as error:
            let_go(sys.stdout)
            self.say(f"The result cannot be written: {error.strerror or error}.")
            raise Stop(code=REFUSED) from error
        return True

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = self.act(**options)
        except Refusal as refusal:
            raise Stop(refusal.message, code=code_of(refusal)) from refusal
        except (DatabaseError, InterfaceError) as error:
            raise Stop(database_message(error)) from error
        except UnicodeEncodeError as error:
            raise _not_text(error, options) from error
        except KeyboardInterrupt:
            raise Stop("Interrupted.", code=INTERRUPTED) from None
        if code:
            raise Stop(code=code)

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        """As Django's, with our exit codes and without the exception's name before the message."""
        self._called_from_command_line = True
        parser = self.create_parser(argv[0], argv[1])
        parsed = _parse(parser, argv[2:])
        handle_default_options(parsed)
        options = vars(parsed)
        args = options.pop("args", ())
        code = DONE
        try:
            with nullcontext() if self.pooled else _unpooled():
                self.execute(*args, **options)
        except SystemCheckError as error:
            code = _report(self, error, str(error).strip(), options)
        except CommandError as error:
            code = _report(self, error, str(error), options)
        except BrokenPipeError:
            let_go(sys.stdout)
        except Exception:  # noqa: BLE001  (a fault of ours is reported whole, and never with the code of a bad spec)
            traceback.print_exc()
            code = REFUSED
        finally:
            connections.close_all()
        sys.exit(code)


@contextmanager
def _unpooled() -> Iterator[None]:
    """Connections of their own for a command that ends in a moment.

    A pool would try an unreachable server for seconds, log each time, and then not say what was wrong.
    """
    options = connections.settings[DEFAULT_DB_ALIAS].get("OPTIONS", {})
    connections.close_all()
    pool = options.pop("pool", None)
    try:
        yield
    finally:
        if pool is not None:
            connections.close_all()
            options["pool"] = pool


def _parse(parser: ArgumentParser, words: list[str]) -> Namespace:
    try:
        return parser.parse_args(words)
    except SystemExit as stop:
        # The parser printed the usage; it ends with 2, which here means that a run was refused.
        sys.exit(stop.code if not stop.code else WRONG_USE)


def _report(command: KampongCommand, error: CommandError, message: str, options: dict[str, Any]) -> int:
    if options.get("traceback"):
        raise error
    if message:
        command.say(message)
    return error.returncode if isinstance(error, Stop) else REFUSED


def _not_text(error: UnicodeEncodeError, options: dict[str, Any]) -> Exception:
    """A wrong use where it was an argument whose bytes are no UTF-8: no database keeps that. Else a fault of ours."""
    given = any(isinstance(one, str) and error.object[error.start : error.end] in one for one in options.values())
    return UsageError(f"an argument is not text in UTF-8: {error.object!r}") if given else error


def code_of(refusal: Refusal) -> int:
    """1 where a spec is at fault, else 2."""
    return BAD_SPEC if isinstance(refusal, SpecUnreadable | SpecBroken) else REFUSED


def database_message(error: Exception) -> str:
    """What an operator has to do about a database that does not answer as it should."""
    text = str(error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    if _is_missing_table(error, reason):
        return f"The database is not migrated ({reason}). Run: {to_type('migrate')}"
    if "is locked" in reason:
        return f"The database is busy ({reason}). Try again."
    if isinstance(error, OperationalError | InterfaceError):
        return f"The database cannot be reached: {reason}. Check DATABASE_URL."
    return f"The database refused: {reason}"


def _is_missing_table(error: Exception, reason: str) -> bool:
    if isinstance(error, ProgrammingError) and "does not exist" in reason:
        return True
    return isinstance(error, OperationalError) and ("no such table" in reason or "no such column" in reason)
