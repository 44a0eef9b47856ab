"""Makes typed policies, triggers and store steps from a tree that passed every rule (spec 1.2)."""

from __future__ import annotations

from typing import Any

from workflows.spec import policy_model as model
from workflows.spec import trigger_model
from workflows.spec.durations import seconds
from workflows.spec.model_base import Json
from workflows.spec.policy_shapes import executes

_Tree = dict[str, Any]
_WHO = ("users", "groups")
_LENGTHS = ("expires_in", "remind_every", "recall", "valid_for")


def policy(defaults: _Tree, own: _Tree) -> model.Policy:
    """The nearer place wins key by key, also inside `approvers`, `escalate`, `on_decision` and `auto`."""
    merged = {**defaults, **own}
    for key in ("escalate", "on_decision", "auto"):
        if key in defaults and key in own:
            merged[key] = {**defaults[key], **own[key]}
    if "approvers" in merged:
        merged["approvers"] = _approvers(defaults.get("approvers", {}), own.get("approvers", {}))
    fields = {key: value for key, value in merged.items() if key not in ("notify", "editable", "on_expire", *_LENGTHS)}
    return model.Policy(
        **{
            **fields,
            **{key: seconds(merged[key]) for key in _LENGTHS if key in merged},
            **_on_expire(merged.get("on_expire", "expire")),
            "approvers": model.Approvers(**_tuples(merged.get("approvers", {}), *_WHO)),
            "editable": tuple(merged.get("editable", ())),
            "escalate": _escalate(merged.get("escalate")),
            "on_decision": model.OnDecision(**_tools(merged.get("on_decision", {}))),
            "auto": model.Auto(**_tools(merged.get("auto", {}), "check")),
            "notify": tuple(_channel(one) for one in merged["notify"]) if "notify" in merged else None,
        }
    )


def _approvers(defaults: _Tree, own: _Tree) -> _Tree:
    """Users and groups are one unit: merging must never widen who may decide."""
    if any(key in own for key in _WHO):
        defaults = {key: value for key, value in defaults.items() if key not in _WHO}
    return {**defaults, **own}


def _on_expire(text: str) -> _Tree:
    tool = executes(text)
    return {"on_expire": text} if tool is None else {"on_expire": "execute_tool", "on_expire_tool": tool}


def _escalate(tree: _Tree | None) -> model.Escalation | None:
    return None if tree is None else model.Escalation(after=seconds(tree["after"]), groups=tuple(tree["groups"]))


def _tools(tree: _Tree, *only: str) -> _Tree:
    """With the names of the tools in place of their calls."""
    return {key: executes(text) if not only or key in only else text for key, text in tree.items()}


def _channel(tree: _Tree) -> model.SlackChannel | model.EmailChannel:
    if tree["type"] == "slack":
        return model.SlackChannel(**tree)
    return model.EmailChannel(**_tuples(tree, "to"))


def _tuples(tree: _Tree, *keys: str) -> _Tree:
    return {key: tuple(value) if key in keys else value for key, value in tree.items()}


def trigger(tree: _Tree) -> trigger_model.Trigger:
    """A trigger of the kind that its `type` names, its lengths of time in seconds."""
    kinds: dict[str, Any] = {
        "webhook": trigger_model.WebhookTrigger,
        "schedule": trigger_model.ScheduleTrigger,
        "poll": trigger_model.PollTrigger,
    }
    made: trigger_model.Trigger = kinds[tree["type"]](**in_seconds(tree, "dedupe_ttl", "lock_ttl", "every", "seen_ttl"))
    return made


def in_seconds(tree: _Tree, *keys: str) -> dict[str, Json]:
    return {key: seconds(value) if key in keys else value for key, value in tree.items()}
