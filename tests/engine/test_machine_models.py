"""Action steps: prompts, gates, structured answers and their one retry (engine semantics 4 and 6)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.engine.scripted import Script, a_spec, an_action, play
from workflows.engine.effects import (
    ExpressionFailed,
    MatchPatterns,
    ModelFailed,
    ModelGate,
    ModelMalformed,
    ModelObject,
    ModelText,
)
from workflows.engine.events import StepCompleted
from workflows.engine.machine import run
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING

SHAPE = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "note": {"type": "string", "default": "none"},
    },
}
GATED = {
    "type": "object",
    "required": ["confidence"],
    "properties": {"confidence": {"type": "number"}},
}


def completed(played: Any) -> StepCompleted:
    (event,) = [event for event in played.events if isinstance(event, StepCompleted)]
    return event


def ask(step: Any, *answers: Any, version: str = "1.1") -> Any:
    return play(a_spec(step, version=version), script=Script(models={"decide": answers}))


def test_a_plain_step_keeps_the_text_and_no_confidence() -> None:
    event = completed(ask(an_action(), ModelText(text="hi")))
    assert (event.output, event.confidence) == ({"text": "hi"}, None)


def test_a_model_error_is_the_failure_as_it_is() -> None:
    assert ask(an_action(), ModelFailed(error="quota used up")).last.error == "quota used up"


def test_only_what_the_step_sets_goes_with_the_call() -> None:
    plain = ask(an_action(), ModelText(text="x")).questions[0]
    assert (plain.model, plain.temperature, plain.want) == (None, None, "text")
    own = ask(an_action(model="small", temperature=0.5, instructions="Be brief."), ModelText(text="x")).questions[0]
    assert (own.model, own.temperature, own.system) == ("small", 0.5, "Be brief.")


@pytest.mark.parametrize(
    ("version", "result", "output"),
    [
        ("1.0", {"a": 1}, {"a": 1}),
        ("1.1", {"a": 1}, {"a": 1, "confidence": 0.9}),
        ("1.1", {"confidence": 3, "a": 1}, {"confidence": 0.9, "a": 1}),
        ("1.1", [1], [1]),
    ],
)
def test_a_gate_keeps_its_result_and_in_1_1_the_confidence_with_it(version: str, result: Any, output: Any) -> None:
    event = completed(ask(an_action(confidence_gate=True), ModelGate(result=result, confidence=0.9), version=version))
    assert (event.output, event.confidence) == (output, 0.9)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_confidence_that_is_no_number_never_passes_a_gate(version: str) -> None:
    played = ask(an_action(confidence_gate=True), ModelGate(result={}, confidence=math.nan), version=version)
    assert played.line == "S F"


def test_a_valid_structured_answer_is_the_output_with_its_defaults() -> None:
    played = ask(an_action(output_schema=SHAPE), ModelObject(value={"code": "ABC", "extra": 1}))
    assert completed(played).output == {"code": "ABC", "extra": 1, "note": "none"}
    assert completed(played).confidence is None
    (question,) = played.questions
    assert question.want == "object"
    assert "pattern" in question.prompt
    assert "pattern" not in str(question.structure)


def test_a_wrong_answer_is_shown_back_once_with_its_problems() -> None:
    step = an_action(output_schema=SHAPE)
    played = ask(step, ModelObject(value={"code": "abc"}), ModelObject(value={"code": "ABC"}))
    assert played.line == "S C completed"
    first, second = played.questions
    assert second.prompt.startswith(first.prompt)
    assert "output.code" in second.prompt
    assert '{"code":"abc"}' in second.prompt


def test_there_is_never_a_third_call() -> None:
    wrong = ModelObject(value={"code": "abc"})
    played = ask(an_action(output_schema=SHAPE), wrong, ModelObject(value=NOTHING), wrong)
    assert played.line == "S F"
    assert len(played.questions) == 2
    assert "after 1 retry" in played.last.error
    assert "output: " in played.last.error


def test_an_answer_that_the_client_calls_broken_counts_as_one_with_problems() -> None:
    broken = ModelMalformed(problems=("output.code: wrong",), raw={"code": 7})
    played = ask(an_action(output_schema=SHAPE), broken, ModelObject(value={"code": "ABC"}))
    assert played.line == "S C completed"
    assert "output.code: wrong" in played.questions[1].prompt
    assert '{"code":7}' in played.questions[1].prompt


def test_an_answer_that_is_no_json_is_a_problem_and_not_a_crash() -> None:
    played = ask(
        an_action(output_schema=SHAPE), ModelObject(value={"code": math.nan}), ModelObject(value={"code": "ABC"})
    )
    assert played.line == "S C completed"
    assert "not a JSON number" in played.questions[1].prompt


def test_a_failing_call_is_not_retried() -> None:
    played = ask(an_action(output_schema=SHAPE), ModelFailed(error="timed out"), ModelObject(value={}))
    assert (played.line, played.last.error, len(played.questions)) == ("S F", "timed out", 1)


def test_a_structured_gate_takes_its_confidence_from_the_answer() -> None:
    step = an_action(output_schema=GATED, confidence_gate=True)
    event = completed(ask(step, ModelObject(value={"confidence": 2}), ModelObject(value={"confidence": 0.4})))
    assert (event.output, event.confidence) == ({"confidence": 0.4}, 0.4)


def test_a_pattern_that_cannot_be_searched_for_fails_the_step() -> None:
    generator = run(a_spec(an_action(output_schema=SHAPE)), Situation(input="go"))
    next(generator)
    next(generator)
    assert isinstance(generator.send(ModelObject(value={"code": "ABC"})), MatchPatterns)
    failed: Any = generator.send(ExpressionFailed(index=0, reason="it took too long"))
    assert "^[A-Z]{3}$" in failed.error
    assert "it took too long" in failed.error


def test_a_driver_that_answers_with_the_wrong_thing_is_told_so() -> None:
    with pytest.raises(TypeError, match="AskModel cannot be answered with ModelGate"):
        ask(an_action(), ModelGate(result={}, confidence=1))
