"""One decision a request, with its proof and its successor in one transaction (design 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals import audit
from approvals.errors import ActionChanged, ApprovalNotFound
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide, decide_run
from statestore.models import StateRecord
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, acting, begin, key_of, to_pause, work, write_spec
from workflows.errors import Invalid, NotAllowed, NothingPending, SpecChanged
from workflows.models import Run, Status
from workflows.reading import own_state, run_json, run_state
from workflows.registry import SpecFile
from workflows.runs import cancel_run, newest

Paying = tuple[SpecFile, FakeTools]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def paying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paying]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(PAYING_ANSWERS) as tools:
        yield write_spec(tmp_path, PAYING, url=tools.url), tools


def test_it_pauses_with_a_record_and_forgets_the_run(paying: Paying) -> None:
    spec, tools = paying
    run, key = to_pause(spec)
    state = run_state(run)
    assert state["status"] == "awaiting_approval"
    assert state["pendingApproval"]["key"] == key
    assert state["trace"][0] == {"step": "look", "status": "completed", "output": 120}
    assert StateRecord.objects.filter(key=f"approval:{key}").count() == 1
    assert run.outputs == ""
    assert [request.method for request in tools.requests] == ["GET"]


def test_an_approval_goes_on_from_the_paused_step_and_repeats_nothing(paying: Paying, people: People) -> None:
    spec, tools = paying
    run, key = to_pause(spec)
    outcome = decide(key, approved=True, reason="fine", actor=acting(people.approver))
    work()
    assert [(r.method, r.url.rpartition("/")[2]) for r in tools.requests] == [
        ("GET", "invoice"),
        ("POST", "pay"),
        ("POST", "receipt"),
    ]
    assert tools.requests[1].header("authorization") == "Bearer tok-canary"
    assert tools.requests[1].json() == {"amount": 120, "for": "go"}
    state = run_state(run)
    assert state["status"] == "completed"
    assert [record["step"] for record in state["trace"]] == ["look", "pay", "receipt"]
    assert run_json(run)["resumedAs"] == str(outcome.run.uuid)
    assert own_state(run)["status"] == "awaiting_approval"
    assert not StateRecord.objects.filter(key__contains=key).exists()


def test_the_second_decision_is_told_who_gave_the_first(paying: Paying, people: People) -> None:
    spec, _ = paying
    run, key = to_pause(spec)
    decide(key, approved=False, reason="wrong", actor=acting(people.approver))
    with pytest.raises(ApprovalNotFound) as told:
        decide(key, approved=True, actor=acting(people.approver))
    decision = told.value.extra["decision"]
    assert (decision["outcome"], decision["by"], decision["surface"]) == ("rejected", "approver", "api")
    with pytest.raises(NothingPending, match=r"nothing is pending \(rejected by approver on .* \(api\)\)"):
        decide_run(run, approved=True, actor=acting(people.approver))


def test_a_rejection_ends_the_run_without_a_worker(paying: Paying, people: People) -> None:
    spec, tools = paying
    run, key = to_pause(spec)
    outcome = decide(key, approved=False, reason="wrong customer", actor=acting(people.approver))
    state = run_state(run)
    assert (state["status"], state["error"]) == ("rejected", "wrong customer")
    assert state["trace"] == [
        {"step": "look", "status": "completed", "output": 120},
        {"step": "pay", "status": "rejected", "error": "wrong customer"},
    ]
    assert newest(run).pk == outcome.run.pk
    assert work() == 0
    assert len(tools.requests) == 1


def test_without_the_permission_every_key_is_refused_alike(paying: Paying, people: People) -> None:
    spec, _ = paying
    _, key = to_pause(spec)
    told = []
    for asked in (key, "00000000-0000-4000-8000-000000000000", "no key at all"):
        with pytest.raises(NotAllowed) as refused:
            decide(asked, approved=True, actor=acting(people.stranger))
        told.append(refused.value.message)
    assert len(set(told)) == 1


def test_a_changed_spec_refuses_the_approval_and_consumes_nothing(paying: Paying, people: People) -> None:
    spec, _ = paying
    run, key = to_pause(spec)
    spec.path.write_text(spec.text.replace("goal: Pay what is due.", "goal: Pay more."))
    with pytest.raises(SpecChanged) as refused:
        decide(key, approved=True, actor=acting(people.approver))
    assert refused.value.extra["recorded"] == spec.hash[:12]
    assert refused.value.extra["present"] not in (None, spec.hash[:12])
    spec.path.unlink()
    with pytest.raises(SpecChanged) as missing:
        decide(key, approved=True, actor=acting(people.approver))
    assert missing.value.extra["present"] is None
    spec.path.write_text("# a comment changes nothing\n" + spec.text)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert run_state(run)["status"] == "completed"


def test_a_rejection_is_allowed_under_any_spec(paying: Paying, people: People) -> None:
    spec, _ = paying
    run, key = to_pause(spec)
    spec.path.write_text("not: [a spec")
    decide(key, approved=False, actor=acting(people.approver))
    assert run_state(run)["status"] == "rejected"


def test_a_digest_that_is_not_the_stored_one_consumes_nothing(paying: Paying, people: People) -> None:
    spec, _ = paying
    run, key = to_pause(spec)
    with pytest.raises(ActionChanged):
        decide(key, approved=True, digest="1:" + "0" * 64, actor=acting(people.approver))
    digest = ApprovalRequest.objects.get(key=key).digest
    decide(key, approved=True, digest=digest, actor=acting(people.approver))
    entry = AuditEntry.objects.get(act="decide")
    assert entry.digest_sent
    assert "approvals.decide" in entry.policy
    assert newest(run).status == Status.QUEUED


def test_answers_that_nobody_asked_for_are_refused_before_anything_is_consumed(paying: Paying, people: People) -> None:
    spec, _ = paying
    _, key = to_pause(spec)
    with pytest.raises(Invalid):
        decide(key, approved=True, answers={"a": 1}, actor=acting(people.approver))
    with pytest.raises(Invalid):
        decide(key, approved=True, reason="nul \0 here", actor=acting(people.approver))
    assert ApprovalRequest.objects.get(key=key).status == "open"


def test_a_host_that_was_switched_after_the_approval_is_asked_again(
    tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeTools(PAYING_ANSWERS) as tools, FakeTools(PAYING_ANSWERS) as thief:
        monkeypatch.setenv("PAY_TOKEN", "tok")
        monkeypatch.setenv("PAY_HOST", tools.url)
        text = PAYING.replace('"{url}/pay"', '"${{PAY_HOST}}/pay"')
        run, key = to_pause(write_spec(tmp_path, text, url=tools.url))
        decide(key, approved=True, actor=acting(people.approver))
        monkeypatch.setenv("PAY_HOST", thief.url)
        work()
        again = newest(run)
        assert again.status == Status.AWAITING
        request = ApprovalRequest.objects.get(run=again)
        assert str(request.reopened_from) == key
        assert thief.requests == []
        decide(key_of(again), approved=True, actor=acting(people.approver))
        work()
        assert run_state(run)["status"] == "completed"
        assert [r.method for r in thief.requests] == ["POST"]


def test_cancelling_a_waiting_run_voids_its_request(paying: Paying, people: People) -> None:
    spec, _ = paying
    run, key = to_pause(spec)
    cancel_run(run, actor=acting(people.operator), reason="duplicate")
    state = run_state(run)
    assert (state["status"], state["trace"][0]["output"]) == ("cancelled", 120)
    assert "operator" in state["error"]
    with pytest.raises(ApprovalNotFound) as told:
        decide(key, approved=True, actor=acting(people.approver))
    assert told.value.extra["decision"]["outcome"] == "cancelled"
    with pytest.raises(NothingPending, match=r"the run is cancelled; nothing is pending \(cancelled by operator on"):
        decide_run(run, approved=True, actor=acting(people.approver))


def test_an_expired_request_is_refused_before_any_sweep(tmp_path: Path, people: People, clock: Clock) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    clock.advance(7 * 24 * 3600 + 1)
    with pytest.raises(ApprovalNotFound) as told:
        decide(key, approved=True, actor=acting(people.approver))
    assert told.value.extra["decision"]["outcome"] == "expired"
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_a_run_that_pauses_again_asks_under_a_new_key(tmp_path: Path, people: People) -> None:
    run, first = to_pause(write_spec(tmp_path, ASKING))
    decide(first, approved=True, reason="ok by me", actor=acting(people.approver))
    work()
    second = key_of(newest(run))
    assert second != first
    decide(second, approved=True, actor=acting(people.approver))
    work()
    assert run_state(run)["finalOutput"] == {
        "first": {"approved": True, "reason": "ok by me"},
        "second": {"approved": True},
    }


def test_every_decision_leaves_one_sealed_entry(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    for approved in (True, False):
        _, key = to_pause(spec)
        decide(key, approved=approved, reason="because", actor=acting(people.approver, "admin"))
        work()
    assert audit.seal() == 2
    assert audit.verify().first_bad is None
    AuditEntry.objects.filter(seal_no=1).update(reason="something else")
    assert "entry 1" in str(audit.verify().first_bad)


def test_the_successor_is_never_written_twice(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    decide(key, approved=True, actor=acting(people.approver))
    assert Run.objects.filter(resumed_from=run).count() == 1
    assert begin(write_spec(tmp_path, ASKING)).status == Status.QUEUED
