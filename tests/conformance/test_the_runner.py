"""The runner itself: every family is accounted for, a broken expectation fails, and nothing is left unread."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance import cases, in_memory
from tests.conformance.cases import CLI, FIXTURES, IN_MEMORY, LATER, PERSISTED, SERVE, SLACK, STORE
from tests.conformance.expectations import OVERALL, PENDING, QUESTION, RECORD, REQUEST
from tests.conformance.matching import CaseError, Unmet

Path = tuple[str | int, ...]


def changed(case_id: str, path: Path, value: Any) -> cases.Case:
    """A copy of the case with another value there."""
    case = copy.deepcopy(cases.named(case_id))
    inner: Any = case
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return case


def test_every_family_runs_or_is_named_with_the_reason_why_not(report: Callable[[str], None]) -> None:
    found = Counter(case["family"] for case in cases.CASES)
    running = {*IN_MEMORY, CLI, FIXTURES, PERSISTED, SERVE, SLACK, STORE}
    assert running | set(LATER) == set(found)
    assert not running & set(LATER)
    assert all(LATER.values())
    left = ", ".join(f"{family} {found[family]}" for family in LATER) or "none"
    ran = sum(found[family] for family in running)
    report(f"{ran} of {len(cases.CASES)} engine cases run; families left for later: {left}")


def test_no_case_is_there_twice() -> None:
    assert [name for name, times in Counter(case["id"] for case in cases.CASES).items() if times > 1] == []


#: Case, an expectation in it, and a value under which it no longer holds.
BROKEN: list[tuple[str, Path, Any]] = [
    ("ev-approval-step-approved", ("status",), "failed"),
    ("ev-approval-step-approved", ("events", 1), "rejected:review"),
    ("ev-approval-step-approved", ("events", 2), "step_completed:other"),
    ("ev-approval-step-approved", ("events",), ["step_started:review", "awaiting_approval:review", "completed"]),
    ("ev-approval-step-approved", ("pending",), []),
    ("ev-approval-step-approved", ("pending", 0, "kind"), "tool"),
    ("ev-approval-step-approved", ("pending", 0, "step"), "other"),
    ("ev-approval-step-approved", ("pending", 0, "tool"), "send"),
    ("ev-approval-step-approved", ("pending", 0, "reason_equals"), "Send it to {{ input }}?"),
    ("ev-approval-step-approved", ("pending", 0, "reason"), ["Grace"]),
    ("ev-approval-step-approved", ("trace",), []),
    ("ev-approval-step-approved", ("trace", 0, "step"), "other"),
    ("ev-approval-step-approved", ("trace", 0, "status"), "rejected"),
    ("ev-approval-step-approved", ("trace", 0, "output_equals"), {"approved": True}),
    ("ev-approval-step-approved", ("trace", 0, "output_equals"), {"approved": 1, "reason": "looks fine"}),
    ("ev-approval-step-approved", ("trace", 0, "output"), {"approved": False}),
    ("ev-approval-step-approved", ("trace", 0, "no_output"), True),
    ("ev-approval-step-approved", ("output_equals",), {}),
    ("ev-approval-step-approved", ("output_lacks",), ["review"]),
    ("ev-approval-step-approved", ("requests_at_pause",), [1]),
    ("ev-approval-step-rejected", ("error_equals",), "wrong"),
    ("ev-approval-step-rejected", ("trace", 0, "error_equals"), "wrong"),
    ("ev-approval-step-rejected", ("trace", 0, "error_mentions"), ["right"]),
    ("ev-tool-failure-stops-run", ("error_mentions", 1), "501"),
    ("ev-tool-failure-stops-run", ("error_lacks",), ["send"]),
    ("ev-tool-failure-stops-run", ("nowhere_in_state",), ["send"]),
    ("ev-tool-failure-stops-run", ("model_calls", "after"), 1),
    ("ev-tool-failure-stops-run", ("requests",), []),
    ("ev-tool-failure-stops-run", ("requests_count",), 2),
    ("ev-tool-failure-stops-run", ("requests_any_order",), [{"method": "GET"}]),
    ("ev-tool-failure-stops-run", ("requests", 0, "method"), "PUT"),
    ("ev-tool-failure-stops-run", ("requests", 0, "url"), "http://tools.test/other"),
    ("t10-keys-not-templated", ("requests", 0, "json", "n"), "5"),
    ("t10-keys-not-templated", ("requests", 0, "json_subset"), {"n": 6}),
    ("t10-keys-not-templated", ("requests", 0, "mentions"), ["nothing of it"]),
    ("t10-keys-not-templated", ("requests", 0, "nowhere"), ["application/json"]),
    ("http-raw-default-type", ("requests", 0, "text"), "hello"),
    ("http-raw-default-type", ("requests", 0, "headers", "content-type"), "text/plain"),
    ("resp-extract-null", ("trace", 0, "no_output"), True),
    ("resp-extract-nothing", ("trace", 0, "output_equals"), None),
    ("gate-output-1-0-has-no-confidence", ("trace", 0, "confidence"), 0.8),
    ("gate-output-1-0-has-no-confidence", ("trace", 0, "no_confidence"), True),
    ("prompt-step-overrides", ("prompts", 0, "model"), None),
    ("prompt-step-overrides", ("prompts", 0, "temperature"), None),
    ("prompt-step-overrides", ("prompts", 0, "instructions_equals"), "Answer in 3 words"),
    ("prompt-step-overrides", ("prompts", 0, "equals"), "Step: one"),
    ("prompt-step-overrides", ("prompts", 0, "contains"), ["step: one"]),
    ("prompt-step-overrides", ("prompts", 0, "contains_in_order"), ["think", "Step: one"]),
    ("prompt-step-overrides", ("prompts", 0, "lacks"), ["think"]),
    ("schema-retry-once", ("prompts", 0, "call"), 3),
    ("retry-408", ("sleeps_ms",), [200]),
]


@pytest.mark.parametrize(
    ("case_id", "path", "value"),
    [pytest.param(*one, id=f"{one[0]}-{'.'.join(map(str, one[1]))}") for one in BROKEN],
)
def test_a_broken_expectation_fails_and_is_named(case_id: str, path: Path, value: Any) -> None:
    with pytest.raises(Unmet, match=str(path[0])):
        in_memory.play(changed(case_id, ("expect", *path), value))


def test_every_expectation_of_a_run_is_seen_to_fail() -> None:
    said = {part for _, path, _ in BROKEN for part in path if isinstance(part, str)}
    assert {*OVERALL, *PENDING, *QUESTION, *RECORD, *REQUEST} <= said


UNKNOWN: list[tuple[Path, Any]] = [
    (("tools",), {}),
    (("expect", "exit"), 0),
    (("expect", "trace", 0, "duration"), 1),
    (("expect", "pending", 0, "colour"), "red"),
    (("expect", "prompts"), [{"step": "draft", "tokens": 5}]),
    (("expect", "requests", 0, "cookies"), {}),
    (("decisions", 0, "by"), "Ada"),
    (("trigger",), {"method": "POST"}),
    (("model",), {"draft": {"result": {}}}),
    (("http", "GET /x"), {"statuss": 200}),
]
KNOWN = {
    "id": "known",
    "family": "events",
    "about": "What every one of these cases would be without what is unknown in it.",
    "spec": """\
version: "1.0"
agent:
  id: clerk
  name: Case agent
  role: Clerk
  goal: Handle it.
  model: { provider: ollama, name: test-model }
  tools:
    - { name: look, action: http_request, method: GET, url: "http://tools.test/x" }
  workflow:
    - { step: draft, action: write }
    - { step: ask, type: approval }
    - { step: look, type: tool, tool: look }
""",
    "input": "go",
    "model": {"draft": "x"},
    "http": {"GET /x": {"json": 1}},
    "decisions": [{"decision": "approve"}],
    "expect": {"trace": [{}, {}, {}], "pending": [{}], "requests": [{}]},
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "CASES", [KNOWN])


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("path", "value"), [pytest.param(*one, id=".".join(map(str, one[0]))) for one in UNKNOWN])
def test_what_the_runner_does_not_know_is_an_error_of_the_case(path: Path, value: Any) -> None:
    with pytest.raises(CaseError, match=r"know|kind"):
        in_memory.play(changed("known", path, value))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("http",), {}, "no answer is scripted for GET"),
        (("model",), {}, "no answer is scripted for step 'draft'"),
        (("model",), {"draft": []}, "past the end"),
        (("decisions",), [{"decision": "approve"}, {"decision": "approve"}], "without asking for 1"),
    ],
)
def test_more_or_less_than_the_case_foresees_fails(path: Path, value: Any, words: str) -> None:
    case = changed("known", path, value)
    case["expect"] = {}
    with pytest.raises(Unmet, match=words):
        in_memory.play(case)


@pytest.mark.usefixtures("known")
def test_without_the_unknown_the_case_passes() -> None:
    in_memory.play(KNOWN)
