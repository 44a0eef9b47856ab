"""What the approval policies, triggers and store steps of a 1.2 spec must agree on (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workflows.spec import patterns, rules
from workflows.spec.durations import seconds
from workflows.spec.errors import Path, clipped, listed
from workflows.spec.model import Json
from workflows.spec.policy_shapes import executes, first_key, policy_of
from workflows.spec.shapes import Faults
from workflows.spec.trigger_model import SEEN_SECONDS

_ASK = "request_human_approval"
_Policy = dict[str, Any]


def places(tree: dict[str, Json]) -> Iterator[tuple[str, Path, _Policy]]:
    """Every policy that a spec writes: what kind of place it is (agent, tool, condition, approval), where, and what."""
    agent = tree["agent"]
    if "approvals" in agent:
        yield "agent", ("agent", "approvals"), agent["approvals"]
    for path, tool in rules.tools(tree):
        if "approval" in tool:
            yield "tool", (*path, "approval"), tool["approval"]
    for path, step in rules.steps(tree):
        if step.get("type") in ("approval", "condition"):
            policy = policy_of(step)
            if policy:
                yield step["type"], path, policy


def policies(tree: dict[str, Json], faults: Faults) -> None:
    """The rules of each policy, alone and with the defaults that it fills its gaps from."""
    defaults = tree["agent"].get("approvals", {})
    for kind, path, policy in places(tree):
        _mode(kind, path, policy, faults)
        _waits(path, policy, defaults, faults)
        _editable(kind, path, policy, tree, faults)
        for at, name in _tools_named(path, policy):
            _tool_is_free(at, name, tree, faults)


def names_of_calls(tree: dict[str, Json], faults: Faults) -> None:
    """What a gate called is kept as `<step>.check`, or what it called for: no other gate or step may be meant by it.

    Otherwise a later gate would take an earlier one's answer for its own, and call nothing.
    """
    if not any(True for _, path, policy in places(tree) for _ in _tools_named(path, policy)):
        return
    names = [step["step"] for _, step in rules.steps(tree)]
    kept = {f"{name}.{what}": name for name in names for what in ("check", "on_decision", "on_expire")}
    seen: set[str] = set()
    for path, step in rules.steps(tree):
        name = step["step"]
        at = (*path, "step")
        if name in seen:
            faults.soft(
                at,
                f'an earlier step is called "{clipped(name)}" as well, and policies here call tools: what they gave is '
                "kept under the step's name, so every step needs its own",
            )
        elif name in kept:
            faults.soft(
                at,
                f'"{clipped(name)}" is the name of what the gate of step "{clipped(kept[name])}" calls; '
                "call this step otherwise",
            )
        seen.add(name)


def branches_that_ask(tree: dict[str, Json], faults: Faults) -> None:
    """A policy on a condition holds for the branch that asks a person; without one it would hold for nothing."""
    for path, step in rules.steps(tree):
        if step.get("type") == "condition" and policy_of(step) and _ASK not in (step["then"], step["else"]):
            key = next(iter(policy_of(step)))
            faults.soft((*path, key), f'"{key}" holds for a branch {_ASK}, and this condition has none')


def _mode(kind: str, path: Path, policy: _Policy, faults: Faults) -> None:
    if policy.get("mode") == "record" and kind != "approval":
        faults.soft((*path, "mode"), '"record" is for approval steps only: nothing else can go on without its decision')


def _waits(path: Path, policy: _Policy, defaults: _Policy, faults: Faults) -> None:
    """Lengths of time that cannot both be meant; the fault stands at the one that this place wrote."""
    both = {**defaults, **policy}
    both["escalate"] = (both.get("escalate") or {}).get("after")
    for early, late, problem in (
        (
            "recall",
            "valid_for",
            '"valid_for" is shorter than "recall": an approval would be stale before its use',
        ),
        ("escalate", "expires_in", "the request expires before it would be escalated"),
        ("remind_every", "expires_in", "the request expires before anybody would be reminded"),
    ):
        first, last = _length(both.get(early)), _length(both.get(late))
        key = late if late in policy else early
        if first is None or last is None or key not in policy:
            continue
        if last < first or (last == first and late == "expires_in"):
            faults.soft((*path, key), problem)


def _length(text: Json) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        return seconds(text)
    except ValueError:
        return None  # its shape was refused already


def _editable(kind: str, path: Path, policy: _Policy, tree: dict[str, Json], faults: Faults) -> None:
    names = [step["step"] for _, step in rules.steps(tree)]
    before = names
    if kind in ("approval", "condition"):
        before = names[: int(path[2])]
    for at, text in enumerate(policy.get("editable", [])):
        if not patterns.RESPONSE_PATH.fullmatch(text):
            continue  # that was said already
        key = first_key(text)
        where = (*path, "editable", at)
        if key == "action":
            if kind in ("approval", "condition"):
                faults.soft(where, '"action" is a tool\'s call, and nothing is called here; name an earlier step')
        elif key not in before:
            known = f"steps here: {listed(before)}" if before else "no step comes before"
            first = clipped(key or text)
            faults.soft(where, f'the first key must be "action" or an earlier step, not "{first}"; {known}')


# Tools that a policy calls -----------------------------------------------------------------------------------


def _tools_named(path: Path, policy: _Policy) -> Iterator[tuple[Path, str]]:
    on_decision, auto = policy.get("on_decision", {}), policy.get("auto", {})
    calls = [
        ((*path, "on_expire"), policy.get("on_expire")),
        *(((*path, "on_decision", key), text) for key, text in on_decision.items()),
        ((*path, "auto", "check"), auto.get("check")),
    ]
    for at, text in calls:
        name = executes(text) if isinstance(text, str) else None
        if name is not None:
            yield at, name


def _tool_is_free(path: Path, name: str, tree: dict[str, Json], faults: Faults) -> None:
    found = next((tool for _, tool in rules.tools(tree) if tool["name"] == name), None)
    if found is None:
        known = listed(tool["name"] for _, tool in rules.tools(tree)) or "none"
        faults.soft(path, f'there is no tool "{clipped(name)}"; the tools are: {known}')
    elif "approval" in found or found.get("requires_approval"):
        faults.soft(path, f'the tool "{clipped(name)}" needs an approval itself, so it cannot be called here')


def polled_tool(tree: dict[str, Json], faults: Faults) -> None:
    """A poll calls its tool while nobody is there to ask."""
    trigger = tree["agent"].get("trigger", {})
    if trigger.get("type") == "poll":
        _tool_is_free(("agent", "trigger", "tool"), trigger["tool"], tree, faults)


def stays_seen(tree: dict[str, Json], faults: Faults) -> None:
    """What stays in the answers of a poll is still known at the next one, or it would start a run each time."""
    trigger = tree["agent"].get("trigger", {})
    if trigger.get("type") != "poll":
        return
    given = "seen_ttl" in trigger
    every, seen = _length(trigger["every"]), _length(trigger["seen_ttl"]) if given else SEEN_SECONDS
    if every is not None and seen is not None and seen <= every:
        problem = '"seen_ttl" must be longer than "every": what stays in the answers would start a run at each poll'
        told = problem if given else f"{problem}; it is 30 days where it is left out"
        faults.soft(("agent", "trigger", "seen_ttl" if given else "every"), told)
