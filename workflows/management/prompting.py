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
_HOW = "Approve? y or yes approves; "
_HOW_TO_ANSWER = "Approve? y {JSON} approves with these answers, y alone with the defaults; "
_HOW_TO_SAY_WHY = "Approve? y: REASON approves with that reason; "
_HOW_TO_DO_BOTH = "Approve? y: REASON {JSON} approves with reason and answers, y: REASON alone with the defaults; "
_YES_WITH = re.compile(r"y(?:es)?\s*(?P<reason>)(?P<answers>\{.*)", re.IGNORECASE | re.DOTALL)
_YES_BECAUSE = re.compile(r"y(?:es)?\s*:(?P<reason>.*)(?P<answers>)", re.IGNORECASE | re.DOTALL)
_YES_BECAUSE_WITH = re.compile(r"y(?:es)?\s*:(?P<reason>[^{]*)(?P<answers>(?:\{.*)?)", re.IGNORECASE | re.DOTALL)
_BY_APPROVE_ALL = "approved by --approve-all"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a line at the prompt means."""

    approved: bool
    reason: str | None = None
    answers: Json | None = None


def read_answer(line: str, policy: Policy = _NO_POLICY) -> Answer:
    """`y` and `yes` approve, `n:` and `no:` reject with the text after the colon, anything else rejects.

    Where the policy has a form, JSON after `y` is its answers; where it needs reasons, the text after `y:` is one.
    Invalid when the answers do not fit the form, or a reason is missing.
    """
    text = line.strip()
    given = _yes(text, policy)
    if given is not None:
        reason, answer = given
        answers.check_reason(policy, approved=True, reason=reason)
        filled = answers.checked(policy, approved=True, answers=_json(answer))
        return Answer(approved=True, reason=reason or None, answers=filled)
    found = _NO.fullmatch(text)
    reason = found[1].strip() if found else ""
    answers.check_reason(policy, approved=False, reason=reason)
    return Answer(approved=False, reason=reason or None)


def _yes(text: str, policy: Policy) -> tuple[str, str] | None:
    """Reason and answers of a yes; None for a no. In specs of 1.0 and 1.1, only a bare yes is one."""
    if text.lower() in _YES:
        return "", ""
    patterns = []
    if policy.form is not None:
        patterns.append(_YES_WITH)
    if policy.require_reason != "never":
        patterns.append(_YES_BECAUSE if policy.form is None else _YES_BECAUSE_WITH)
    found = next((found for pattern in patterns if (found := pattern.fullmatch(text))), None)
    return None if found is None else (found["reason"].strip(), found["answers"])


def _json(text: str) -> Json | None:
    if not text:
        return None
    try:
        return jsontext.loads(text)
    except ValueError as problem:
        raise Invalid(f"the answers are not JSON: {problem}") from problem


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Asks at `out` and reads one line of standard input for each pause; the end of input rejects.

    Answers that do not fit a form reject as well, and say why, and so does a missing reason: lines that come from a
    pipe stay in step with the pauses. A person at a terminal is asked again.

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
        try:
            self.out.write(f"{question(pause)}\n{_how(pause.policy)}{_REJECTS}")
            self.out.flush()
        except OSError as error:
            self.complain(f"The question cannot be shown ({error.strerror or error}): rejected.")
            return _unanswered(pause.policy, "the question could not be shown")
        line = _read_line()
        if sys.stdin is None or not sys.stdin.isatty():
            with contextlib.suppress(OSError):
                self.out.write("\n")
                self.out.flush()
        if not line:
            self.complain("The input ended before an answer: rejected.")
            return _unanswered(pause.policy, "the input ended before an answer")
        return read_answer(line, pause.policy)


def _how(policy: Policy) -> str:
    """How to say yes. Without a reason, where one is only asked of a no, the short forms do as well."""
    if policy.require_reason != "always":
        return _HOW if policy.form is None else _HOW_TO_ANSWER
    return _HOW_TO_SAY_WHY if policy.form is None else _HOW_TO_DO_BOTH


def _unanswered(policy: Policy, why: str) -> Answer:
    """A rejection that nobody gave; with its cause as the reason where one is needed."""
    return Answer(approved=False, reason=None if policy.require_reason == "never" else why)


def question(pause: Pause) -> str:
    """What waits: step, kind, reason and, where there is one, the action or the output in question."""
    tool = f", tool: {one_line(pause.tool)}" if pause.tool else ""
    lines = [f'Step "{one_line(pause.step)}" waits for a decision (kind: {pause.kind}{tool}).', quoted(pause.reason)]
    if pause.action is not None:
        lines += ["What will run:" if pause.kind == "tool" else "Its output:", quoted(pretty(pause.action))]
    if pause.policy.form is not None:
        lines += ["Its form:", quoted("\n".join(formwords.lines(pause.policy.form)))]
    if pause.policy.editable:
        lines.append("Edits are made on a stored request (--detach); here it is approved as it is, or rejected.")
    asks = pause.policy.approvers
    if asks.quorum > 1 or asks.four_eyes or asks.users is not None or asks.groups is not None:
        lines.append("Nobody checks here who decides.")
    return "\n".join(lines)


def approve_unasked(pause: Pause, *, by: str, complain: Callable[[str], None]) -> Decision:
    """The decision of --approve-all. A form whose needed fields have no defaults rejects: nobody answered it.

    Where a reason is needed, it says what is true: that nobody looked.
    """
    try:
        answered = answers.checked(pause.policy, approved=True, answers=None)
    except Invalid as problem:
        why = f"--approve-all cannot answer the form: {problem.message}"
        complain(f'Rejected: step "{one_line(pause.step)}": {one_line(why)}')
        return decision_for(pause, approved=False, reason=why, by=by)
    complain(approved_line(pause))
    reason = _BY_APPROVE_ALL if pause.policy.require_reason == "always" else None
    return decision_for(pause, approved=True, reason=reason, by=by, answers=answered)


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
