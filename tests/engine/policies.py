"""Specs of version 1.2 and their gates in few words, for the tests of policies."""

from __future__ import annotations

from typing import Any

from tests.engine.scripted import Played, a_spec, a_tool
from workflows.engine.effects import CallTool, Decision, Pause
from workflows.engine.events import StepCompleted
from workflows.engine.situation import Position, Situation
from workflows.spec.model import ApprovalStep, HttpTool, Spec, Step, Tool
from workflows.spec.policy_model import Auto, OnDecision, Policy

RULE = "action.body.json.amount < 100"
OTHER = "action.body.json.amount > 50"


def v12(*steps: Step, tools: tuple[Tool, ...] = (), **more: Any) -> Spec:
    return a_spec(*steps, version="1.2", tools=tools, **more)


def sign(step: str = "sign", **policy: Any) -> ApprovalStep:
    """An approval step under this policy."""
    return ApprovalStep(step=step, message="Really?", policy=a_policy(**policy))


def a_policy(*, auto: dict[str, str] | None = None, on_decision: dict[str, str] | None = None, **keys: Any) -> Policy:
    return Policy(auto=Auto(**(auto or {})), on_decision=OnDecision(**(on_decision or {})), **keys)


def asked_for(name: str = "send", *, auto: Any = None, on_decision: Any = None, **changed: Any) -> HttpTool:
    """A tool that needs an approval; keys of a policy by name, all else is the tool's."""
    keys = {key: changed.pop(key) for key in list(changed) if key in Policy.model_fields}
    return a_tool(name, requires_approval=True, policy=a_policy(auto=auto, on_decision=on_decision, **keys), **changed)


def inner(events: list[Any]) -> dict[str, Any]:
    """What gates called, by the name under which it is kept."""
    return {event.step: event.output for event in events if isinstance(event, StepCompleted) and event.within}


def called(played: Played) -> list[tuple[str, str]]:
    return [(effect.step, effect.tool) for effect in played.effects if isinstance(effect, CallTool)]


def resumed(pause: Pause, decision: Decision, **more: Any) -> Situation:
    position = Position(step_index=pause.step_index, phase=pause.phase, outputs={**pause.outputs, **more})
    return Situation(input="go", position=position, decision=decision)
