"""`run_spec`: one run in this process, without a database; or, with `--detach`, stored where it pauses."""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, cast

from django.core.management.base import CommandParser

from approvals.actors import operating_system_user
from workflows.adapters.fixtures import DEFAULT, MODES
from workflows.advance import world_for
from workflows.engine import jsontext
from workflows.engine.effects import Decision, Pause
from workflows.engine.events import Event
from workflows.engine.situation import Situation, Trigger
from workflows.engine.state import new_state
from workflows.engine.values import Json
from workflows.errors import FixturesUnusable, ModelUnavailable
from workflows.management.acting import starter
from workflows.management.answers import AnsweringCommand
from workflows.management.base import BAD_SPEC, DONE, INTERRUPTED, REFUSED, WAITING, Stop, UsageError
from workflows.management.following import Rest, rest_of, to_rest
from workflows.management.progress import Progress, Write
from workflows.management.prompting import Prompt, approve_unasked
from workflows.management.terminal import plain, pretty, warning_of
from workflows.memory_run import State, run_in_memory
from workflows.models import Run
from workflows.recording import Recording
from workflows.registry import SERVED_ID, SERVED_ID_RULE, SpecFile, SpecUnreadable, read_spec
from workflows.runs import start_run

_LARGEST_TIMEOUT = 2**53 - 1


class Command(AnsweringCommand):
    help = "Run a spec once in this process. Where it needs a person, it asks here; with --detach it waits stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("spec", metavar="SPEC", help="the spec's file")
        parser.add_argument("--input", required=True, metavar="TEXT", help="the run's input; may be empty")
        parser.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
        parser.add_argument("--approve-all", action="store_true", help="approve every pause without asking")
        parser.add_argument("--detach", action="store_true", help="store the run; at a pause print its key and end")
        pairs: dict[str, Any] = {"action": "append", "default": [], "type": _pair, "metavar": "NAME=VALUE"}
        parser.add_argument("--var", help="a value for a var that the spec declares; repeatable", **pairs)
        parser.add_argument("--header", help="a header of the trigger; repeatable", **pairs)
        modes: dict[str, Any] = {"choices": MODES, "default": "live"}
        parser.add_argument("--tools", help="how tools are called: live (default), record, or replay offline", **modes)
        parser.add_argument("--models", help="how models are asked: live (default), record, or replay offline", **modes)
        where = f"folder of the recorded calls (default: {DEFAULT} beside the spec)"
        parser.add_argument("--fixtures", type=_folder, metavar="DIR", help=where)
        parser.add_argument("--timeout", type=_milliseconds, metavar="MS", help="time limit of one model call")

    def perform(self, **options: Any) -> int:
        _check_usage(options)
        path = Path(options["spec"]).absolute()
        try:
            spec_file = read_spec(path)
        except SpecUnreadable as refusal:
            return self._refuse(path, refusal, options["json"])
        for note in spec_file.notes:
            self.complain(warning_of(path, note))
        _check_vars(spec_file, options["var"])
        return self._detached(spec_file, options) if options["detach"] else self._in_memory(spec_file, options)

    def refused(self, code: str, message: str, extra: dict[str, Any]) -> dict[str, Json]:
        return {"success": False, "phase": "execution", **extra, "code": code, "error": message}

    def _refuse(self, path: Path, refusal: SpecUnreadable, as_json: bool) -> int:
        """The file cannot be read, or it is no spec."""
        if not as_json:
            for error in refusal.errors:
                self.complain(f"{path}: {error}")
        elif refusal.unread:
            self.answer({"success": False, "phase": "validation", "error": refusal.message})
        else:
            self.answer({"success": False, "phase": "validation", "errors": [_error(one) for one in refusal.errors]})
        return BAD_SPEC

    def _progress(self, as_json: bool) -> Progress:
        """With --json stdout is for the object alone; whoever sits at a terminal still sees the run move."""
        out = self.stderr if as_json else self.stdout
        seen = not as_json or sys.stderr.isatty()
        return Progress(_quiet(out) if seen else _nowhere, live=seen and out.isatty())

    # In memory ----------------------------------------------------------------------------------------------

    def _in_memory(self, spec_file: SpecFile, options: dict[str, Any]) -> int:
        as_json: bool = options["json"]
        try:
            world = world_for(spec_file.spec, options["timeout"], recording=_recording(options))
        except (ModelUnavailable, FixturesUnusable) as refusal:
            if not as_json:
                raise
            self.answer({"success": False, "phase": "execution", "error": refusal.message})
            return REFUSED
        situation = Situation(
            input=options["input"],
            trigger=Trigger(headers={name.lower(): text for name, text in options["header"]}),
            overrides=dict(options["var"]),
            root=str(uuid.uuid4()),
        )
        progress = self._progress(as_json)
        out = self.stderr if as_json else self.stdout
        prompt = Prompt(out=cast(Any, _Raw(out)), complain=self.say, by=operating_system_user())
        known = new_state()

        def ask(pause: Pause) -> Decision:
            if not options["approve_all"]:
                with progress.asking():
                    return prompt.ask(pause)
            return approve_unasked(pause, by=prompt.by, complain=self.say)

        def listen(event: Event, state: State) -> None:
            nonlocal known
            known = state
            progress.hear(event)

        try:
            state = run_in_memory(spec_file.spec, situation, world, ask=ask, listener=listen, waiter=progress.wait)
        except KeyboardInterrupt:
            if not as_json:
                raise
            self.answer(_outcome({**known, "status": "interrupted", "error": "Interrupted."}))
            return INTERRUPTED
        finally:
            progress.stop()
        return self._tell(state, as_json)

    def _tell(self, state: State, as_json: bool) -> int:
        code = DONE if state["status"] == "completed" else REFUSED
        if as_json:
            self.answer(_outcome(state))
        elif code == DONE:
            self.show_lines(["Run completed.", pretty(state["finalOutput"])])
        else:
            self.complain(f"Run {state['status']}: {state['error']}")
        return code

    # Stored -------------------------------------------------------------------------------------------------

    def _detached(self, spec_file: SpecFile, options: dict[str, Any]) -> int:
        if not SERVED_ID.fullmatch(spec_file.agent_id):
            raise Stop(f"agent id {spec_file.agent_id!r} cannot be stored: {SERVED_ID_RULE}", code=BAD_SPEC)
        started = start_run(
            spec_file,
            input=options["input"],
            actor=starter(),
            headers=dict(options["header"]),
            overrides=dict(options["var"]),
        )
        progress = self._progress(options["json"])
        try:
            run = to_rest(started.run, here=True, tell=progress.hear, waiter=progress.wait)
        finally:
            progress.stop()
        rest = rest_of(run)
        ended = rest.state["status"] not in ("running", "awaiting_approval")
        if options["json"]:
            self.answer(_outcome(rest.state, id=str(run.uuid)) if ended else _waiting(run, rest))
        else:
            self.show_lines(rest.lines)
            if rest.complaint:
                self.say(rest.complaint)
        return rest.code if ended else WAITING


def _nowhere(text: str) -> None:
    """Nobody looks."""


def _quiet(stream: Any) -> Write:
    """Writes at once, and nothing where the stream takes nothing more: a run does not stop for want of a listener."""

    def write(text: str) -> None:
        with contextlib.suppress(OSError):
            stream.write(text, ending="")
            stream.flush()

    return write


class _Raw:
    """A command's stream that ends no line by itself."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text, ending="")

    def flush(self) -> None:
        self._stream.flush()


def _outcome(state: State, **more: Json) -> Json:
    """The object of a run that ended."""
    success = state["status"] == "completed"
    result = {"output": state["finalOutput"]} if success else {"error": state["error"]}
    return {"success": success, "status": state["status"], **more, **result, "trace": state["trace"]}


def _waiting(run: Run, rest: Rest) -> Json:
    """The object of a stored run that waits for a person, or for a worker."""
    answer: dict[str, Json] = {"success": True, "status": rest.state["status"], "id": str(run.uuid)}
    if rest.pending is not None:
        answer |= {"key": rest.pending["key"], "expiresAt": rest.pending["expiresAt"]}
    return answer


def _error(error: Any) -> dict[str, Json]:
    place = {} if error.line is None else {"line": error.line}
    return {"path": error.where, "message": error.message, **place}


def _check_usage(options: dict[str, Any]) -> None:
    for option in ("tools", "models"):
        if options["detach"] and options[option] != "live":
            raise UsageError(
                f"--detach and --{option} {options[option]} exclude each other: a stored run is continued by workers, "
                "which call live"
            )
    if options["detach"] and options["approve_all"]:
        raise UsageError("--detach and --approve-all exclude each other: a stored pause is decided by somebody")
    if options["detach"] and options["timeout"] is not None:
        raise UsageError("--timeout is for a run in this process; with --detach, set timeout_ms in the spec's model")
    for option, texts in (
        ("input", [options["input"]]),
        ("var", [part for pair in options["var"] for part in pair]),
        ("header", [part for pair in options["header"] for part in pair]),
    ):
        for text in texts:
            try:
                jsontext.check(text)
            except jsontext.NotJson as error:
                # Halves of surrogate pairs are how Python holds what the shell gave and is not UTF-8.
                reason = error.reason if "\0" in text else "the text is not UTF-8; convert it, for example with iconv"
                raise UsageError(f"--{option}: {reason}") from error


def _recording(options: dict[str, Any]) -> Recording:
    folder: Path = options["fixtures"] or Path(options["spec"]).absolute().parent / DEFAULT
    return Recording(tools=options["tools"], models=options["models"], folder=folder)


def _check_vars(spec_file: SpecFile, given: list[tuple[str, str]]) -> None:
    declared = spec_file.spec.vars
    unknown = [name for name, _ in given if name not in declared]
    if unknown:
        known = ", ".join(declared) or "none"
        raise UsageError(plain(f"--var: the spec declares no var {', '.join(unknown)}; declared: {known}"))


def _pair(text: str) -> tuple[str, str]:
    """NAME=VALUE, split at the first `=`; the value may be empty."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise ArgumentTypeError("NAME=VALUE is needed, with a name before the first =")
    return name.strip(), value


def _folder(text: str) -> Path:
    if not text or "\x00" in text:
        raise ArgumentTypeError("the path of a folder is needed")
    return Path(text).absolute()


def _milliseconds(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", text) or not 0 < int(text) <= _LARGEST_TIMEOUT:
        raise ArgumentTypeError("a positive whole number of milliseconds is needed")
    return int(text)
