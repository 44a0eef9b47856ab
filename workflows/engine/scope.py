"""What an expression of a 1.1 spec can read (engine semantics 11)."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.engine import jsontext
from workflows.engine.situation import Trigger
from workflows.engine.values import NOTHING, Json, Outputs
from workflows.spec.model import Spec


def scope(spec: Spec, outputs: Outputs, trigger: Trigger, input: str, vars: Mapping[str, Json]) -> dict[str, Json]:
    """Every step's output by name, in the order of the spec, then `trigger`, `input` and `vars`, which win.

    A step that completed without a value is not there: what reads it gets nothing.
    """
    names = [step.step for step in spec.agent.workflow]
    steps = {name: outputs[name] for name in names if outputs.get(name, NOTHING) is not NOTHING}
    return {**steps, "trigger": trigger_value(trigger, input), "input": input, "vars": dict(vars)}


def trigger_value(trigger: Trigger, input: str) -> dict[str, Json]:
    """The body's own fields when it is a mapping, then `headers` and the whole `body`, which hide fields so called."""
    body = _from_input(input) if trigger.body is NOTHING else trigger.body
    fields = body if isinstance(body, Mapping) else {}
    return {**fields, "headers": dict(trigger.headers), "body": body}


def _from_input(input: str) -> Json:
    try:
        return jsontext.loads(input)
    except jsontext.NotJson:
        return input
