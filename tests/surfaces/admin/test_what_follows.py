"""What an approval and a rejection do is said in whole: the votes, the time to take it back, what is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals import records
from approvals.admin import history
from approvals.models import ApprovalRequest
from approvals.reminding import escalate_due
from approvals.wording import promise_of
from tests.approvals.policies import a_pay, a_sign, member
from tests.conftest import Clock
from tests.workbench import begin, to_pause, work

pytestmark = pytest.mark.django_db(transaction=True)


def _promised(key: str) -> tuple[str, str]:
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    record = records.peek(request)
    assert record is not None
    return promise_of(request, record)


def test_one_of_several_approvals_is_called_that(tmp_path: Path) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    yes, no = _promised(key)
    assert yes.startswith("It counts as one of the 2 approvals that are needed; with the last one: Goes on after")
    assert no == "The run ends as rejected; no later step runs."


@pytest.mark.parametrize(
    ("recall", "valid_for", "waits", "stale"),
    [("30s", "90s", "30 seconds", "1 minute"), ("15m", "4h", "15 minutes", "4 hours")],
)
def test_the_time_to_take_it_back_and_the_time_it_is_good_for_are_said(
    tmp_path: Path, recall: str, valid_for: str, waits: str, stale: str
) -> None:
    policy = f"recall: {recall}, valid_for: {valid_for}, on_decision: {{approved: execute_tool(tell)}}"
    _, key = to_pause(a_pay(tmp_path, policy))
    yes, _ = _promised(key)
    assert yes.startswith(
        f"It can be taken back for {waits}, and nothing happens meanwhile. After that: First calls the tool “tell”."
    )
    assert yes.endswith(f" If nothing was called {stale} after the approval, it is asked again.")


def test_what_is_called_for_a_request_that_no_run_waits_for_is_said(tmp_path: Path) -> None:
    begin(a_sign(tmp_path, "mode: record, on_decision: {approved: execute_tool(tell)}"))
    work()
    yes, no = _promised(str(ApprovalRequest.objects.get().key))
    kept = "It is kept as approved. No run waits for it."
    assert yes == f"{kept} Then the tool “tell” is called, in a run of its own."
    assert no == "It is kept as rejected. No run waits for it."


def test_an_escalation_is_told_in_the_history_in_words(tmp_path: Path, clock: Clock) -> None:
    member("hed", "heads")
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}, escalate: {after: 4h, groups: [heads]}"))
    clock.advance(5 * 3600)
    assert escalate_due() == 1
    line = history.history_of(ApprovalRequest.objects.select_related("run").get(key=key)).lines[-1]
    assert f"{line.who} {line.what}" == "Nobody had decided by then: it was escalated to heads"
