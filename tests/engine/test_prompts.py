"""The text of a model call, line by line (engine semantics 4.1, 4.2)."""

from __future__ import annotations

from tests.engine.specs import spec_of
from workflows.engine.prompts import gate_structure, prompt, system_text
from workflows.engine.values import NOTHING
from workflows.spec.model import ActionStep

THINK = ActionStep(step="think", action="weigh it")


def test_the_system_text_is_role_and_goal_on_two_lines() -> None:
    assert system_text(spec_of(THINK), THINK) == "Role: Clerk\nGoal: Handle the request."


def test_a_step_with_instructions_has_them_verbatim() -> None:
    step = ActionStep(step="think", action="weigh", instructions="Answer in {input} words {{ input }}\n")
    assert system_text(spec_of(step), step) == "Answer in {input} words {{ input }}\n"


def test_a_bare_step_has_three_lines() -> None:
    assert prompt(THINK, " raw\ninput ", {}, None) == "User input:  raw\ninput \nStep: think\nAction: weigh it"


def test_every_line_that_has_something_to_say_is_there_in_order() -> None:
    step = ActionStep(step="think", action="weigh it", inputs=("a", "b"), query="ignored", confidence_gate=True)
    *lines, last = prompt(step, "go", {"b": {"text": 'café "x"'}, "a": {"n": 3.0}}, "rendered").split("\n")
    assert lines == [
        "User input: go",
        "Step: think",
        "Action: weigh it",
        "Relevant fields: a, b",
        "Query: rendered",
        'Prior step outputs: {"b":{"text":"café \\"x\\""},"a":{"n":3}}',
    ]
    for word in ("JSON object", "result", "confidence", "0 to 1"):
        assert word in last


def test_an_empty_query_is_left_out() -> None:
    assert "Query" not in prompt(THINK, "go", {}, "")


def test_steps_without_a_value_are_no_earlier_outputs() -> None:
    assert "Prior" not in prompt(THINK, "go", {"gone": NOTHING}, None)
    assert prompt(THINK, "go", {"gone": NOTHING, "a": None}, None).endswith('Prior step outputs: {"a":null}')


def test_a_gate_with_a_schema_asks_for_no_result_and_confidence() -> None:
    step = ActionStep(step="t", action="a", confidence_gate=True, output_schema={"type": "object", "properties": {}})
    assert prompt(step, "go", {}, None) == "User input: go\nStep: t\nAction: a"


def test_the_structure_of_a_gate_requires_both_fields() -> None:
    structure = gate_structure()
    assert structure["required"] == ["result", "confidence"]
    assert set(structure["properties"]) == {"result", "confidence"}
