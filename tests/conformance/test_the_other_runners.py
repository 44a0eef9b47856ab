"""The runners of scripts, calls and store operations can fail as well, and leave nothing unread."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from statestore.memory import MemoryStore, Shelf
from tests.conformance.deciding import FreshProcesses
from tests.conformance.matching import CaseError, Unmet
from tests.conformance.script import Script
from tests.conformance.scriptexpectations import Found, check_act, of_acts, of_answers
from tests.conformance.service import Answer, Service
from tests.conformance.stage import Stage
from tests.conformance.store_ops import Player
from tests.conformance.test_the_runner import changed
from tests.conftest import Clock

NAMES = {"k1": "K-1", "first_id": "R-1"}
PAUSED = Found(
    state={
        "status": "awaiting_approval",
        "pendingApproval": {"step": "a", "kind": "tool", "toolName": "t", "key": "K-1"},
    },
    result={"code": "approval_not_found", "http": 404, "error": "resolved or expired"},
    keys=["K-1"],
    record='{"step_index":0,"step":"a","phase":"after","outputs":{"a":1},"without_output":["b"]}',
)
ANSWERED = Found(
    answer=Answer(status=200, text='{"x":1}', body={"id": "R-1", "approvals": [{"key": "K-1", "step": "a"}]})
)
BROKEN: list[tuple[Found, dict[str, Any]]] = [
    (PAUSED, {"status": "completed"}),
    (PAUSED, {"code": "ok"}),
    (PAUSED, {"http": 200}),
    (PAUSED, {"mentions": ["unknown"]}),
    (PAUSED, {"pending": {"step": "b"}}),
    (PAUSED, {"pending": {"kind": "approval"}}),
    (PAUSED, {"pending": {"tool": None}}),
    (PAUSED, {"pending": {"has_key": False}}),
    (PAUSED, {"pending": {"new_key": "k2"}}),
    (Found(), {"pending": {}}),
    (PAUSED, {"refused": True}),
    (PAUSED, {"keys": []}),
    (PAUSED, {"step_index": 1}),
    (PAUSED, {"step": "b"}),
    (PAUSED, {"phase": "before"}),
    (PAUSED, {"outputs": {"a": 2}}),
    (PAUSED, {"outputs_lacks": ["a"]}),
    (PAUSED, {"outputs_lacks": ["b"]}),
    (PAUSED, {"lacks": ["outputs"]}),
    (ANSWERED, {"status": 201}),
    (ANSWERED, {"json": {"id": "R-2"}}),
    (ANSWERED, {"lacks": ["x"]}),
    (ANSWERED, {"list_of": []}),
    (ANSWERED, {"list_of": [{"key": "first_id"}]}),
    (ANSWERED, {"list_of": [{"tool": "t"}]}),
    (ANSWERED, {"fresh_id": True}),
]


@pytest.mark.parametrize(("found", "expected"), BROKEN, ids=[str(expected) for _, expected in BROKEN])
def test_a_broken_expectation_of_an_act_fails(found: Found, expected: dict[str, Any]) -> None:
    with pytest.raises(Unmet):
        check_act("act", expected, found, dict(NAMES))


def test_every_expectation_of_an_act_is_seen_to_fail() -> None:
    said = {key for _, expected in BROKEN for key in expected}
    assert {*of_acts({}), *of_answers({})} <= said


@pytest.mark.parametrize("found", [PAUSED, ANSWERED])
def test_an_unknown_expectation_of_an_act_is_an_error_of_the_case(found: Found) -> None:
    with pytest.raises(CaseError, match="know"):
        check_act("act", {"colour": "red"}, found, dict(NAMES))


@pytest.mark.parametrize(
    ("case_id", "path", "value", "error"),
    [
        ("pa-off-by-default", ("expect", "store_created"), True, Unmet),
        ("pa-off-by-default", ("expect", "records_left"), 1, Unmet),
        ("pa-off-by-default", ("expect", "colour"), "red", CaseError),
        ("pa-guardrail-after-phase", ("expect", "resumed_events", 0), "step_started:decide", Unmet),
        ("pa-approval-step", ("expect", "trace", 0, "output_equals", "reason"), "ok", Unmet),
        ("pa-approval-step", ("script", 3, "expect", "code"), "already_resolved", Unmet),
        ("pa-approval-step", ("script", 2), {"do": "sleep"}, CaseError),
        ("pa-approval-step", ("script", 2), {"do": "restart", "times": 2}, CaseError),
        ("pa-approval-step", ("decisions",), [], CaseError),
    ],
)
def test_a_broken_script_fails(
    case_id: str,
    path: tuple[str | int, ...],
    value: Any,
    error: type[Exception],
    folder: Path,
    everybody: User,
    clock: Clock,
    elsewhere: FreshProcesses,
) -> None:
    with Stage(changed(case_id, path, value)) as stage, pytest.raises(error):
        Script(stage, folder, everybody, clock, elsewhere).play()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"call": "GET /healthz", "expect": {"status": 404}}, Unmet),
        ({"call": "GET /healthz", "expect": {"json": {"success": "yes"}}}, Unmet),
        ({"call": "GET /healthz", "expect": {"frames": []}}, CaseError),
        ({"call": "GET /healthz", "during": {}}, CaseError),
        ({"call": "GET /runs/{run1}"}, CaseError),
    ],
)
def test_a_broken_call_fails(line: dict[str, Any], error: type[Exception], service: Service) -> None:
    with pytest.raises(error):
        service.play("call", line, service.expectations())


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        (("store", 1), ["delete", "a", "->", False], Unmet),
        (("store", 1), ["delete", "a", "->", 1], Unmet),
        (("store", 1), ["concurrently", 3, ["delete", "a"], "->", {"true": 3}], Unmet),
        (("store", 1), ["once", "a"], CaseError),
        (("store", 1), ["get", "a", "->", 1, 2], CaseError),
        (("expect", "records_left"), 0, CaseError),
        (("script",), [], CaseError),
    ],
)
def test_a_broken_store_case_fails(
    path: tuple[str | int, ...], value: Any, error: type[Exception], clock: Clock
) -> None:
    shelf = Shelf()

    def opens(kinds: tuple[str, ...]) -> MemoryStore:
        return MemoryStore("default", "case", kinds=kinds, shelf=shelf)

    with pytest.raises(error):
        Player(opens, contextlib.nullcontext, clock).play(changed("store-delete-once", path, value))
