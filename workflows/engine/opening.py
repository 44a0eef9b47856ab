"""What a policy's own rules say when its gate opens, before anybody is asked (spec 1.2, `auto`)."""

from __future__ import annotations

from typing import Any

from workflows.engine import evaluating, jsontext
from workflows.engine.effects import Pause, RuleVerdict
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.engine.walk import Advance, Place, StepFailed, Walk

#: Reasons of a check are shown to people; a longer one is cut.
_MOST = 2000


def by_rule(walk: Walk, place: Place, pause: Pause) -> Advance[RuleVerdict | None]:
    """What `approve_if` and `reject_if` say; None where the policy has neither, or neither is true.

    An expression that cannot be evaluated decides nothing: a person is asked, and told.
    """
    auto = pause.policy.auto
    said: dict[bool, str] = {}
    for approves, source in ((True, auto.approve_if), (False, auto.reject_if)):
        if source is None:
            continue
        more: dict[str, Json] = {"action": pause.action, "output": pause.action}
        try:
            holds = yield from evaluating.condition(walk, place, source, more)
        except StepFailed as problem:
            return RuleVerdict(approved=None, rule=source, reason=f"the rule could not be applied: {problem}")
        if holds:
            said[approves] = source
    if not said:
        return None
    if len(said) == 2:
        both = f"{said[True]}; {said[False]}"
        return RuleVerdict(approved=None, rule=both, reason="one rule approves this and another one rejects it")
    ((approves, source),) = said.items()
    return RuleVerdict(approved=approves, rule=source, reason="" if approves else f"rejected by the rule {source}")


def by_check(tool: str, answer: MaybeJson) -> RuleVerdict:
    """What the checker's answer says: `{decision: approve | reject | ask, reason}`; anything else asks a person."""
    given: Any = answer if isinstance(answer, dict) else {}
    decision, reason = given.get("decision"), given.get("reason")
    words = reason if isinstance(reason, str) else "" if reason is None else jsontext.dumps(reason)
    approved = {"approve": True, "reject": False}.get(decision) if isinstance(decision, str) else None
    if approved is None and decision != "ask":
        shown = "nothing" if answer is NOTHING else jsontext.dumps(answer)
        words = f"the check {tool} gave no decision: {shown}"
    return RuleVerdict(approved=approved, rule=f"execute_tool({tool})", reason=words[:_MOST])


def by_no_check(tool: str, problem: str) -> RuleVerdict:
    """A check that failed decides nothing: a person is asked, and told."""
    return RuleVerdict(approved=None, rule=f"execute_tool({tool})", reason=f"the check failed: {problem}"[:_MOST])
