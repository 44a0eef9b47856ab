"""Where expressions stand in a 1.2 spec besides those of 1.1, and what they may name there (spec 1.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workflows.spec.errors import Path
from workflows.spec.expression_rules import ExpressionRules, Names, check, check_texts
from workflows.spec.model import Json
from workflows.spec.policy_rules import places
from workflows.spec.policy_shapes import executes
from workflows.spec.shapes import Faults
from workflows.spec.spans import Span, parse

_RULES = ("approve_if", "reject_if")


@dataclass(frozen=True, kw_only=True)
class PolicyExpressions(ExpressionRules):
    """Beside the names of 1.1: `action` and `output` in rules, `decision` in tools called on one, `cursor` in polls."""

    reserved: frozenset[str] = frozenset({"trigger", "input", "vars", "decision", "action", "output", "cursor"})

    def for_tool(self, tree: dict[str, Json], name: str, names: Names) -> Names:
        more = []
        if name in _called_on_decision(tree):
            more.append("decision")
        trigger = tree["agent"].get("trigger", {})
        if trigger.get("type") == "poll" and trigger["tool"] == name:
            more.append("cursor")
        return replace(names, roots=(*names.roots, *more)) if more else names

    def more(self, tree: dict[str, Json], names: Names, faults: Faults) -> None:
        shown = replace(names, roots=(*names.roots, "action", "output"))
        for _, path, policy in places(tree):
            for key in _RULES:
                if key in policy.get("auto", {}):
                    check(policy["auto"][key], f'"{key}": ', (*path, "auto", key), shown, faults)
        _check_trigger(tree, replace(names, steps={}), faults)


def _called_on_decision(tree: dict[str, Json]) -> set[str | None]:
    """And by the expiry of a request, where the decision says that there was none."""
    calls = [
        call
        for _, _, policy in places(tree)
        for call in (*policy.get("on_decision", {}).values(), policy.get("on_expire"))
    ]
    return {executes(call) for call in calls if isinstance(call, str)}


def _check_trigger(tree: dict[str, Json], names: Names, faults: Faults) -> None:
    """A trigger runs before any step. A poll's expressions read the tool's answer, whose names nobody knows."""
    trigger = tree["agent"].get("trigger", {})
    path: Path = ("agent", "trigger")
    if "dedupe" in trigger:
        check_texts(trigger["dedupe"], (*path, "dedupe"), names, faults)
        if not any(isinstance(part, Span) for part in parse(trigger["dedupe"])):
            faults.soft(
                (*path, "dedupe"),
                '"dedupe" holds no expression, so every delivery would be a repeat of the first; write one, as in '
                '"{{ trigger.id }}"',
            )
    if trigger.get("type") == "poll":
        for key in ("items", "key", "cursor"):
            if key in trigger:
                check(trigger[key], f'"{key}": ', (*path, key), replace(names, anything=True), faults)
