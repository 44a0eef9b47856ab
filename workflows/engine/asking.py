"""Action steps: one question to a model, a second one when a structured answer is wrong (engine semantics 4, 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from workflows.engine import evaluating, gates, jsontext, prompts, references, schema
from workflows.engine.effects import AskModel, ModelFailed, ModelGate, ModelMalformed, ModelObject, ModelText
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.engine.walk import Advance, Done, Place, StepFailed, Walk, outside, wrong_outcome
from workflows.spec.model import ActionStep
from workflows.spec.shapes import is_number


def ask(walk: Walk, place: Place, step: ActionStep) -> Advance[Done]:
    """What the model made of the step; StepFailed with the model's own message when it could not be asked."""
    gates.no_gate_here(walk, place)
    query = yield from _query(walk, place, step)
    prompt = prompts.prompt(step, walk.situation.input, walk.step_outputs(), query)
    if step.output_schema is not None:
        return (yield from _structured(walk, place, step, step.output_schema, prompt))
    if step.confidence_gate:
        return (yield from _gate(walk, place, step, prompt))
    effect = _question(walk, place, step, prompt, "text")
    outcome = yield from outside(walk, effect)
    if isinstance(outcome, ModelFailed):
        raise StepFailed(outcome.error)
    if not isinstance(outcome, ModelText):
        raise wrong_outcome(effect, outcome)
    return Done(output={"text": outcome.text})


def _query(walk: Walk, place: Place, step: ActionStep) -> Advance[str | None]:
    if step.query is None:
        return None
    if walk.spec.is_1_0:
        return references.fill10(step.query, walk.outputs, walk.situation.input)
    return (yield from evaluating.plain_text(walk, place, step.query))


def _question(
    walk: Walk,
    place: Place,
    step: ActionStep,
    prompt: str,
    want: Literal["text", "gate", "object"],
    structure: Json | None = None,
) -> AskModel:
    return AskModel(
        step=place.step,
        index=place.index,
        system=prompts.system_text(walk.spec, step),
        prompt=prompt,
        want=want,
        structure=structure,
        model=step.model,
        temperature=step.temperature,
    )


def _gate(walk: Walk, place: Place, step: ActionStep, prompt: str) -> Advance[Done]:
    effect = _question(walk, place, step, prompt, "gate", prompts.gate_structure())
    outcome = yield from outside(walk, effect)
    if isinstance(outcome, ModelFailed):
        raise StepFailed(outcome.error)
    if isinstance(outcome, ModelMalformed):
        raise StepFailed(f'Step "{place.step}": the model broke the requested structure: {"; ".join(outcome.problems)}')
    if not isinstance(outcome, ModelGate):
        raise wrong_outcome(effect, outcome)
    confidence, output = outcome.confidence, outcome.result
    if confidence is not None and not is_number(confidence):
        raise StepFailed(f'Step "{place.step}": the model gave {confidence} as its confidence, which is no number.')
    if not walk.spec.is_1_0 and isinstance(output, dict) and confidence is not None:
        output = {**output, "confidence": confidence}
    return Done(output=output, confidence=confidence)


# Structured output -------------------------------------------------------------------------------------------


def _structured(walk: Walk, place: Place, step: ActionStep, wanted: schema.Schema, prompt: str) -> Advance[Done]:
    prompt = f"{prompt}\n{schema.instructions(wanted)}"
    effect = _question(walk, place, step, prompt, "object", schema.structure(wanted))
    value, raw, problems = yield from _judged(walk, place, step, wanted, effect)
    if problems:
        effect = replace(effect, prompt=schema.retry_prompt(prompt, problems, raw))
        value, raw, problems = yield from _judged(walk, place, step, wanted, effect)
    if problems:
        found = "; ".join(problems)
        raise StepFailed(f'Step "{place.step}": the answer did not match the schema after 1 retry: {found}')
    return Done(output=value, confidence=value["confidence"] if step.confidence_gate else None)


def _judged(
    walk: Walk, place: Place, step: ActionStep, wanted: schema.Schema, effect: AskModel
) -> Advance[tuple[Json, MaybeJson, list[str]]]:
    """One call: the answer with defaults, the answer as it came (NOTHING when it is no JSON), and its problems."""
    outcome = yield from outside(walk, effect)
    if isinstance(outcome, ModelFailed):
        raise StepFailed(outcome.error)
    if isinstance(outcome, ModelMalformed):
        raw = NOTHING if _not_json(outcome.raw) else outcome.raw
        return None, raw, list(outcome.problems) or ["output: the answer broke the requested structure"]
    if not isinstance(outcome, ModelObject):
        raise wrong_outcome(effect, outcome)
    value = outcome.value
    problem = _not_json(value)
    if problem:
        return None, NOTHING, [f"output: {problem}"]
    if isinstance(value, dict):
        value = schema.fill_defaults(wanted, value)
    found = yield from evaluating.matches(place, schema.patterns(wanted, value))
    problems = schema.problems(wanted, value, found)
    if not problems and step.confidence_gate:
        problem = schema.gate_problem(value)
        problems = [problem] if problem is not None else []
    return value, outcome.value, problems


def _not_json(value: MaybeJson) -> str | None:
    """Why a client's answer cannot be quoted or kept; None when it can, or when there was none."""
    if value is NOTHING:
        return None
    try:
        jsontext.check(value)
    except jsontext.NotJson as problem:
        return str(problem)
    return None
