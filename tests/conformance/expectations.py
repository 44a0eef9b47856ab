"""What a case may expect of a run, and how each expectation is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.conformance import matching
from tests.conformance.matching import CaseError, Handler, Unmet, shown
from tests.fakes_models import Asked
from tests.fakes_tools import Recorded
from workflows.engine import jsontext


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a case. `state`, `events` and `pauses` as on the wire; `model` is the name in the spec's block."""

    state: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Mapping[str, Any], ...] = ()
    pauses: tuple[Mapping[str, Any], ...] = ()
    requests: tuple[Recorded, ...] = ()
    requests_at_pause: tuple[int, ...] = ()
    questions: tuple[Asked, ...] = ()
    model: str = "test-model"
    sleeps_ms: tuple[int, ...] | None = None


# Parts ---------------------------------------------------------------------------------------------------------


def _field(key: str) -> Handler:
    """Equal to the found mapping's field; null means that there is none."""
    return lambda where, wanted, found: matching.equal(where, wanted, found.get(key))


RECORD: Final[Mapping[str, Handler]] = {
    "step": _field("step"),
    "status": _field("status"),
    "output": lambda where, wanted, found: matching.subset(where, {"output": wanted}, found),
    # Inside a mapping, so that a null output and no output are told apart.
    "output_equals": lambda where, wanted, found: matching.equal(
        where, {"output": wanted}, {key: found[key] for key in found if key == "output"}
    ),
    "no_output": lambda where, wanted, found: matching.absent(where, "output", wanted, found),
    "confidence": _field("confidence"),
    "no_confidence": lambda where, wanted, found: matching.absent(where, "confidence", wanted, found),
    "error_equals": _field("error"),
    "error_mentions": lambda where, wanted, found: matching.mentions(where, wanted, found.get("error", "")),
}

PENDING: Final[Mapping[str, Handler]] = {
    "kind": _field("kind"),
    "step": _field("step"),
    "tool": _field("toolName"),
    "reason_equals": _field("reason"),
    "reason": lambda where, wanted, found: matching.mentions(where, wanted, found["reason"]),
}


def _body(request: Recorded) -> Any:
    try:
        return jsontext.loads(request.body.decode())
    except ValueError as error:
        raise Unmet(f"the body of {request.method} {request.url} is no JSON: {request.body!r}") from error


def _headers(where: str, wanted: Mapping[str, str], found: Recorded) -> None:
    for name, text in wanted.items():
        matching.equal(f"{where}.{name}", text, found.header(name))


def _whole(request: Recorded) -> str:
    lines = [f"{request.method} {request.url}", *(f"{name}: {text}" for name, text in request.headers)]
    return "\n".join([*lines, request.body.decode(errors="replace")])


REQUEST: Final[Mapping[str, Handler]] = {
    "method": lambda where, wanted, found: matching.equal(where, wanted, found.method),
    "url": lambda where, wanted, found: matching.equal(where, wanted, found.url),
    "json": lambda where, wanted, found: matching.equal(where, wanted, _body(found)),
    "json_subset": lambda where, wanted, found: matching.subset(where, wanted, _body(found)),
    "text": lambda where, wanted, found: matching.equal(where, wanted, found.body.decode()),
    "headers": _headers,
    "mentions": lambda where, wanted, found: matching.mentions(where, wanted, _whole(found)),
    "nowhere": lambda where, wanted, found: matching.lacks(where, wanted, _whole(found)),
}

QUESTION: Final[Mapping[str, Handler]] = {
    "equals": lambda where, wanted, found: matching.equal(where, wanted, found.prompt),
    "contains": lambda where, wanted, found: _contains(where, wanted, found.prompt),
    "contains_in_order": lambda where, wanted, found: matching.in_order(where, wanted, found.prompt),
    "lacks": lambda where, wanted, found: matching.lacks(where, wanted, found.prompt),
    "instructions_equals": lambda where, wanted, found: matching.equal(where, wanted, found.system),
    "temperature": lambda where, wanted, found: matching.equal(where, wanted, found.body.get("temperature")),
}


def _contains(where: str, wanted: list[str], text: str) -> None:
    """As written: quotes, escapes and case are the point."""
    for part in wanted:
        matching.in_order(where, [part], text)


# Whole runs ----------------------------------------------------------------------------------------------------


def _status(where: str, wanted: str, found: Outcome) -> None:
    if found.state.get("status") != wanted:
        raise Unmet(f"{where}: expected {wanted}, found {shown(found.state)}")


def _events(where: str, wanted: list[str], found: Outcome) -> None:
    """`type` or `type:step`, complete and in order."""

    def match(place: str, name: str, event: Mapping[str, Any]) -> None:
        kind, colon, step = name.partition(":")
        matching.subset(place, {"type": kind, "step": step} if colon else {"type": kind}, event)

    matching.each(where, wanted, list(found.events), match)


def _by(handlers: Mapping[str, Handler]) -> Handler:
    return lambda where, wanted, found: matching.by_key(where, wanted, found, handlers)


def _trace(where: str, wanted: list[Any], found: Outcome) -> None:
    matching.each(where, wanted, found.state["trace"], _by(RECORD))


def _pending(where: str, wanted: list[Any], found: Outcome) -> None:
    matching.each(where, wanted, list(found.pauses), _by(PENDING))


def _prompts(where: str, wanted: list[dict[str, Any]], found: Outcome) -> None:
    for number, one in enumerate(wanted):
        place, call = f"{where}[{number}]", one.get("call", 1)
        asked = [question for question in found.questions if question.step == one["step"]]
        if len(asked) < call:
            raise Unmet(f"{place}: step {one['step']} was asked {len(asked)} times, not {call}")
        question = asked[call - 1]
        if "model" in one:
            # null: the step names no model, so the spec's own is asked.
            matching.equal(f"{place}.model", one["model"] or found.model, question.body["model"])
        rest = {key: value for key, value in one.items() if key not in ("step", "call", "model")}
        matching.by_key(place, rest, question, QUESTION)


def _model_calls(where: str, wanted: Mapping[str, int], found: Outcome) -> None:
    for step, calls in wanted.items():
        matching.equal(f"{where}.{step}", calls, sum(question.step == step for question in found.questions))


def _output_lacks(where: str, wanted: list[str], found: Outcome) -> None:
    if "finalOutput" not in found.state:
        raise Unmet(f"{where}: there is no final output in {shown(found.state)}")
    for step in wanted:
        matching.absent(f"{where}.{step}", step, True, found.state["finalOutput"])


def _sleeps(where: str, wanted: list[int], found: Outcome) -> None:
    if found.sleeps_ms is None:
        raise CaseError(f"{where}: only a case with `clock: fake` knows what was slept")
    matching.equal(where, wanted, list(found.sleeps_ms))


def _error(found: Outcome) -> str:
    return str(found.state.get("error", ""))


OVERALL: Final[Mapping[str, Handler]] = {
    "status": _status,
    "events": _events,
    "trace": _trace,
    "pending": _pending,
    "error_equals": lambda where, wanted, found: matching.equal(where, wanted, found.state.get("error")),
    "error_mentions": lambda where, wanted, found: matching.mentions(where, wanted, _error(found)),
    "error_lacks": lambda where, wanted, found: matching.lacks(where, wanted, _error(found)),
    "output_equals": lambda where, wanted, found: matching.equal(where, wanted, found.state.get("finalOutput")),
    "output_lacks": _output_lacks,
    "requests": lambda where, wanted, found: matching.each(where, wanted, list(found.requests), _by(REQUEST)),
    "requests_any_order": lambda where, wanted, found: matching.in_any_order(
        where, wanted, list(found.requests), _by(REQUEST)
    ),
    "requests_count": lambda where, wanted, found: matching.equal(where, wanted, len(found.requests)),
    "requests_at_pause": lambda where, wanted, found: matching.equal(where, wanted, list(found.requests_at_pause)),
    "prompts": _prompts,
    "model_calls": _model_calls,
    "sleeps_ms": _sleeps,
    "nowhere_in_state": lambda where, wanted, found: matching.lacks(where, wanted, jsontext.dumps(dict(found.state))),
}


def check(expected: Mapping[str, Any], found: Outcome) -> None:
    """Unmet for the first expectation that does not hold; CaseError for one that nobody knows."""
    matching.by_key("expect", expected, found, OVERALL)
