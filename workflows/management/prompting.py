"""The approval prompt of a run in this process (engine semantics 17.3)."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from workflows.engine.effects import Decision, Pause
from workflows.management.terminal import one_line, pretty, quoted
from workflows.memory_run import decision_for

_NO = re.compile(r"no?\s*:(.*)", re.IGNORECASE | re.DOTALL)
_YES = frozenset({"y", "yes"})
_HOW = "Approve? y or yes approves; n: REASON rejects with that reason; anything else rejects.\n> "


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a line at the prompt means."""

    approved: bool
    reason: str | None = None


def read_answer(line: str) -> Answer:
    """`y` and `yes` approve, `n:` and `no:` reject with the text after the colon, anything else rejects."""
    text = line.strip()
    if text.lower() in _YES:
        return Answer(approved=True)
    found = _NO.fullmatch(text)
    return Answer(approved=False, reason=(found[1].strip() or None) if found else None)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Asks at `out` and reads one line of standard input for each pause; the end of input rejects.

    So does a question that cannot be shown: nobody decides about what nobody saw. `complain` writes a line for the
    person. `by` is the name that the decision carries.
    """

    out: TextIO
    complain: Callable[[str], None]
    by: str

    def ask(self, pause: Pause) -> Decision:
        """The person's answer."""
        try:
            self.out.write(question(pause) + "\n" + _HOW)
            self.out.flush()
        except OSError as error:
            self.complain(f"The question cannot be shown ({error.strerror or error}): rejected.")
            return decision_for(pause, approved=False, reason=None, by=self.by)
        line = _read_line()
        if sys.stdin is None or not sys.stdin.isatty():
            with contextlib.suppress(OSError):
                self.out.write("\n")
                self.out.flush()
        if not line:
            self.complain("The input ended before an answer: rejected.")
        answer = read_answer(line)
        return decision_for(pause, approved=answer.approved, reason=answer.reason, by=self.by)


def question(pause: Pause) -> str:
    """What waits: step, kind, reason and, where there is one, the action or the output in question."""
    tool = f", tool: {one_line(pause.tool)}" if pause.tool else ""
    lines = [f'Step "{one_line(pause.step)}" waits for a decision (kind: {pause.kind}{tool}).', quoted(pause.reason)]
    if pause.action is not None:
        lines += ["What will run:" if pause.kind == "tool" else "Its output:", quoted(pretty(pause.action))]
    return "\n".join(lines)


def approved_line(pause: Pause) -> str:
    """One line for a pause that --approve-all passed."""
    return f'Approved by --approve-all: step "{one_line(pause.step)}", {pause.kind}: {one_line(pause.reason)}'


def _read_line() -> str:
    """One line of standard input; nothing at its end. Bytes that are no text are no answer, and no error."""
    stream = sys.stdin
    if stream is None:
        return ""
    raw = getattr(stream, "buffer", None)
    return stream.readline() if raw is None else str(raw.readline().decode("utf-8", "replace"))
