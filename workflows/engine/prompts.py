"""The text of a model call (engine semantics 4.1 and 4.2)."""

from __future__ import annotations

from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, Outputs
from workflows.spec.model import ActionStep, Spec

_GATE_REQUEST = (
    "Answer with only a JSON object with two fields: `result` (an object) and `confidence` (a number from 0 to 1)."
)


def system_text(spec: Spec, step: ActionStep) -> str:
    """The step's own instructions as written, otherwise the agent's role and goal."""
    return step.instructions or f"Role: {spec.agent.role}\nGoal: {spec.agent.goal}"


def prompt(step: ActionStep, input: str, outputs: Outputs, query: str | None) -> str:
    """What the model is asked, a line for each thing there is to say. `query` is the rendered one.

    For a step with an output schema, `schema.instructions` follows on the next line.
    """
    lines = [f"User input: {input}", f"Step: {step.step}", f"Action: {step.action}"]
    if step.inputs:
        lines.append(f"Relevant fields: {', '.join(step.inputs)}")
    if query:
        lines.append(f"Query: {query}")
    earlier = {name: output for name, output in outputs.items() if output is not NOTHING}
    if earlier:
        lines.append(f"Prior step outputs: {jsontext.dumps(earlier)}")
    if step.confidence_gate and step.output_schema is None:
        lines.append(_GATE_REQUEST)
    return "\n".join(lines)


def gate_structure() -> dict[str, Json]:
    """The JSON Schema of a gate's answer, for a provider that takes one."""
    return {
        "type": "object",
        "properties": {"result": {"type": "object"}, "confidence": {"type": "number"}},
        "required": ["result", "confidence"],
    }
