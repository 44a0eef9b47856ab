"""Between the run's text columns and the engine's values. JSON as text, so that order and numbers survive."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workflows.engine import jsontext
from workflows.engine.effects import Decision, Phase
from workflows.engine.situation import Position, Situation, Trigger
from workflows.engine.values import NOTHING, Json, Outputs
from workflows.models import Run

#: Facts of a decision that the version before does not know, with what they are by default.
_NEWEST = {"phase": "before", "on_expire": None}


def load_record(text: str) -> Any:
    """A record of ours: the values that it carries may be nested as deep as any, whatever stands around them."""
    return jsontext.loads(text, spare=jsontext.RECORD_LEVELS)


def outputs_json(outputs: Outputs) -> dict[str, Json]:
    """`{"outputs": {step: value}, "without_output": [steps that completed without a value]}`, in step order."""
    return {
        "outputs": {step: value for step, value in outputs.items() if value is not NOTHING},
        "without_output": [step for step, value in outputs.items() if value is NOTHING],
        "order": list(outputs),
    }


def outputs_from(stored: dict[str, Json]) -> Outputs:
    """The reverse of `outputs_json`."""
    values, empty = stored["outputs"], set(stored["without_output"])
    return {step: NOTHING if step in empty else values[step] for step in stored["order"]}


def dump_outputs(outputs: Outputs) -> str:
    return jsontext.dumps(outputs_json(outputs)) if outputs else ""


def load_outputs(text: str) -> Outputs:
    return outputs_from(load_record(text)) if text else {}


def dump_decision(decision: Decision | None) -> str:
    """Without the newest facts where they say nothing: a process of the version before reads what it knows."""
    if decision is None:
        return ""
    told = asdict(decision)
    return jsontext.dumps({name: given for name, given in told.items() if given != _NEWEST.get(name, ...)})


def load_decision(text: str) -> Decision | None:
    return Decision(**load_record(text)) if text else None


def trigger_json(trigger: Trigger) -> dict[str, Json]:
    """`{"headers": {...}, "body"?: ...}`."""
    stored: dict[str, Any] = {"headers": dict(trigger.headers)}
    if trigger.body is not NOTHING:
        stored["body"] = trigger.body
    return stored


def trigger_from(stored: dict[str, Json]) -> Trigger:
    return Trigger(headers=stored.get("headers", {}), body=stored.get("body", NOTHING))


def situation_of(run: Run) -> Situation:
    """What the engine starts from. A run without events that has a predecessor replays its stored outputs first."""
    phase: Phase = "after" if run.phase == "after" else "before"
    return Situation(
        input=run.input,
        trigger=trigger_from(load_record(run.trigger)) if run.trigger else Trigger(),
        overrides=load_record(run.overrides) if run.overrides else {},
        position=Position(step_index=run.step_index, phase=phase, outputs=load_outputs(run.outputs)),
        decision=load_decision(run.decision),
        replay=run.resumed_from_id is not None and run.last_event == 0,
        root=str(run.uuid if run.root is None else run.root.uuid),
        rebinds=run.rebinds,
        purpose="on_decision" if run.purpose == "on_decision" else "",
    )
