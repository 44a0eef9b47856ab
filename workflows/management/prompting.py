"""The approval prompt of a run in this process (engine semantics 17.3)."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from approvals import answers
from workflows import formwords
from workflows.engine import jsontext
from workflows.engine.effects import Decision, Pause
from workflows.engine.values import Json
from workflows.errors import Invalid
from workflows.management.terminal import one_line, pretty, quoted
from workflows.memory_run import decision_for
from workflows.spec.policy_model import Policy

_NO_POLICY = Policy()
_NO = re.compile(r"no?\s*:(.*)", re.IGNORECASE | re.DOTALL)
_YES = frozenset({"y", "yes"})
_REJECTS = "n: REASON rejects with that reason; anything else rejects.\n> "
_HOW = f"Approve? y or yes approves; {_REJECTS}"
_HOW_TO_ANSWER = f"Approve? y {{JSON}} approves with these answers, y alone with the defaults; {_REJECTS}"
_YES_WITH = re.compile(r"y(?:es)?\s*(\{.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a line at the prompt means."""

    approved: bool
    reason: str | None = None
    answers: Json | None = None


def read_answer(line: str, policy: Policy = _NO_POLICY) -> Answer:
    """`y` and `yes` approve, `n:` and `no:` reject with the text after the colon, anything else rejects.

    Where the policy has a form, JSON after `y` is its answers; Invalid when they do not fit it.
    """
    text = line.strip()
    found = _YES_WITH.fullmatch(text) if policy.form is not None else None
    if found or text.lower() in _YES:
        return Answer(approved=True, answers=answers.checked(policy, approved=True, answers=_json(found)))
    found = _NO.fullmatch(text)
    return Answer(approved=False, reason=(found[1].strip() or None) if found else None)


def _json(found: re.Match[str] | None) -> Json | None:
    if found is None:
        return None
    try:
        return jsontext.loads(found[1])
    except ValueError as problem:
        raise Invalid(f"the answers are not JSON: {problem}") from problem


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Asks at `out` and reads one line of standard input for each pause; the end of input rejects.

    Answers that do not fit a form reject as well, and say why: lines that come from a pipe stay in step with the
    pauses. A person at a terminal is asked again.

    So does a question that cannot be shown: nobody decides about what nobody saw. `complain` writes a line for the
    person. `by` is the name that the decision carries.
    """

    out: TextIO
    complain: Callable[[str], None]
    by: str

    def ask(self, pause: Pause) -> Decision:
        """The person's answer."""
        while True:
            try:
                answer = self._answer(pause)
            except Invalid as problem:
                self.complain(f"{problem.message}.")
                if sys.stdin is not None and sys.stdin.isatty():
                    continue
                answer = Answer(approved=False, reason=problem.message)
            return decision_for(
                pause, approved=answer.approved, reason=answer.reason, by=self.by, answers=answer.answers
            )

    def _answer(self, pause: Pause) -> Answer:
        how = _HOW if pause.policy.form is None else _HOW_TO_ANSWER
        try:
            self.out.write(question(pause) + "\n" + how)
            self.out.flush()
        except OSError as error:
            self.complain(f"The question cannot be shown ({error.strerror or error}): rejected.")
            return Answer(approved=False)
        line = _read_line()
        if sys.stdin is None or not sys.stdin.isatty():
            with contextlib.suppress(OSError):
                self.out.write("\n")
                self.out.flush()
        if not line:
            self.complain("The input ended before an answer: rejected.")
        return read_answer(line, pause.policy)


def question(pause: Pause) -> str:
    """What waits: step, kind, reason and, where there is one, the action or the output in question."""
    tool = f", tool: {one_line(pause.tool)}" if pause.tool else ""
    lines = [f'Step "{one_line(pause.step)}" waits for a decision (kind: {pause.kind}{tool}).', quoted(pause.reason)]
    if pause.action is not None:
        lines += ["What will run:" if pause.kind == "tool" else "Its output:", quoted(pretty(pause.action))]
    if pause.policy.form is not None:
        lines += ["Its form:", quoted("\n".join(formwords.lines(pause.policy.form)))]
    return "\n".join(lines)


def approve_unasked(pause: Pause, *, by: str, complain: Callable[[str], None]) -> Decision:
    """The decision of --approve-all. A form whose needed fields have no defaults rejects: nobody answered it."""
    try:
        answered = answers.checked(pause.policy, approved=True, answers=None)
    except Invalid as problem:
        reason = f"--approve-all cannot answer the form: {problem.message}"
        complain(f'Rejected: step "{one_line(pause.step)}": {one_line(reason)}')
        return decision_for(pause, approved=False, reason=reason, by=by)
    complain(approved_line(pause))
    return decision_for(pause, approved=True, reason=None, by=by, answers=answered)


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
