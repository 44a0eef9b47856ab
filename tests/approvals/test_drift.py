"""What changed in a spec since its run paused, step by step, and where that is seen from the step that waits."""

from __future__ import annotations

import pytest

from approvals.drift import Drift, drift_of
from approvals.models import ApprovalRequest
from approvals.queue import detail
from approvals.records import peek
from tests.approvals.policies import member
from tests.workbench import acting, to_pause
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

DRAFT = "    - {step: draft, type: tool, tool: fetch}\n"
PAY = "    - {step: pay, type: tool, tool: pay}\n"
RECEIPT = "    - {step: receipt, type: tool, tool: receipt}\n"


def rewrite(spec: SpecFile, *changes: tuple[str, str]) -> None:
    text = spec.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    spec.path.write_text(text, encoding="utf-8")


def drift(key: str) -> Drift | None:
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    record = peek(request)
    assert record is not None
    return drift_of(request, record)


def test_there_is_none_while_the_file_says_the_same(spec: SpecFile) -> None:
    _, key = to_pause(spec)
    assert drift(key) is None
    rewrite(spec, ("workflow:", "# a comment\n  workflow:"))
    assert drift(key) is None


CASES: list[tuple[str, list[tuple[str, str]], str, list[tuple[str, str]], bool]] = [
    (
        "inserted before",
        [(PAY, "    - {step: extra, type: tool, tool: fetch}\n" + PAY)],
        "before",
        [("draft", "same"), ("extra", "added"), ("pay", "same"), ("receipt", "same")],
        True,
    ),
    (
        "renamed",
        [(PAY, PAY.replace("step: pay", "step: transfer"))],
        "several",
        [("draft", "same"), ("pay", "removed"), ("transfer", "added"), ("receipt", "same")],
        False,
    ),
    ("gone", [(PAY, "")], "on", [("draft", "same"), ("pay", "removed"), ("receipt", "same")], False),
    ("a later one gone", [(RECEIPT, "")], "after", [("draft", "same"), ("pay", "same"), ("receipt", "removed")], True),
    (
        "a later one changed",
        [(RECEIPT, RECEIPT.replace("tool: receipt", "tool: fetch"))],
        "after",
        [("draft", "same"), ("pay", "same"), ("receipt", "changed")],
        True,
    ),
    (
        "moved across",
        [(DRAFT, ""), (PAY, PAY + DRAFT), ('"{{ draft.amount }}"', "5"), ("for {{ draft.who }}", "x")],
        "several",
        [("pay", "same"), ("draft", "moved"), ("receipt", "same")],
        True,
    ),
    (
        "its own tool",
        [("team: blue", "team: red")],
        "on",
        [("draft", "same"), ("pay", "same"), ("receipt", "same")],
        True,
    ),
    (
        "the tool of a later one",
        [("/receipt", "/receipts")],
        "after",
        [("draft", "same"), ("pay", "same"), ("receipt", "same")],
        True,
    ),
    (
        "what no step says",
        [("goal: Pay what is due.", "goal: Pay.")],
        "elsewhere",
        [("draft", "same"), ("pay", "same"), ("receipt", "same")],
        True,
    ),
    (
        "the defaults of policies",
        [("  tools:", "  approvals: {require_reason: always}\n  tools:")],
        "on",
        [("draft", "same"), ("pay", "same"), ("receipt", "same")],
        True,
    ),
]


@pytest.mark.parametrize(("changes", "place", "steps", "can"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_where_it_lies(
    spec: SpecFile, changes: list[tuple[str, str]], place: str, steps: list[tuple[str, str]], can: bool
) -> None:
    _, key = to_pause(spec)
    rewrite(spec, *changes)
    found = drift(key)
    assert found is not None
    assert [(one.name, one.state) for one in found.steps] == steps
    assert (found.place, found.can_rebind) == (place, can), found.why_not
    assert found.why_not == "" if can else 'no step "pay" any more' in found.why_not


def test_both_sides_are_shown_as_text_in_the_order_as_written(spec: SpecFile) -> None:
    _, key = to_pause(spec)
    rewrite(spec, ("team: blue", "team: red"), ("goal: Pay what is due.", "goal: Pay."))
    found = drift(key)
    assert found is not None
    goal, pay = sorted(found.others, key=lambda one: one.name)
    assert (goal.name, goal.before, goal.now) == ("agent.goal", "Pay what is due.", "Pay.")
    assert (pay.name, pay.state) == ("tool pay", "changed")
    lines = pay.before.splitlines()
    assert lines[:4] == ["name: pay", "action: http_request", "method: POST", "url: ${PAY_HOST}/pay"]
    assert "  team: blue" in lines
    assert "  team: red" in pay.now.splitlines()
    assert "tok-canary" not in pay.before


@pytest.mark.parametrize("text", ["", "version: [", "nonsense: 1"])
def test_a_broken_or_missing_file_is_told_as_such(spec: SpecFile, text: str) -> None:
    _, key = to_pause(spec)
    if text:
        spec.path.write_text(text, encoding="utf-8")
    else:
        spec.path.unlink()
    found = drift(key)
    assert found is not None
    assert (found.present, found.now, found.steps, found.can_rebind) == (False, None, [], False)
    assert "restore the file" in found.why_not
    told = detail(key, acting(member("asha")))["drift"]
    assert (told["present"], told["now"], told["canRebind"]) == (False, None, False)


def test_the_queue_tells_both_sides_of_what_differs_and_only_names_the_rest(spec: SpecFile) -> None:
    _, key = to_pause(spec)
    rewrite(spec, (RECEIPT, ""))
    told = detail(key, acting(member("asha")))["drift"]
    assert told["place"] == "after"
    assert told["recorded"] != told["now"]
    assert told["steps"][:2] == [{"name": "draft", "state": "same"}, {"name": "pay", "state": "same"}]
    assert told["steps"][2] == {
        "name": "receipt",
        "state": "removed",
        "before": "step: receipt\ntype: tool\ntool: receipt",
    }
