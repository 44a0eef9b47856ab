"""Starting, cancelling, retrying and giving up: each door refuses with a reason and changes nothing then."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.models import F

from approvals.expiry import expire_due
from approvals.models import AuditEntry
from approvals.queue import decision_of
from approvals.services import decide
from tests.conftest import Clock, People
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, HEAD, PAYING, PAYING_ANSWERS, STARTER, acting, begin, to_pause, work, write_spec
from workflows.advance import claim
from workflows.errors import Invalid, ModelUnavailable, NotPossible, RunNotFound, SpecChanged, TooLarge
from workflows.journal import LeaseLost, RunJournal
from workflows.models import Run, SpecVersion, Status
from workflows.reading import own_state, run_json, run_state
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.runs import cancel_run, find_run, give_up_run, newest, retry_run, start_run

pytestmark = pytest.mark.django_db(transaction=True)

#: A gate without a fallback: the step completes, and then the run fails.
GUARDED = """\
  guardrails: {{confidence_threshold: 0.8}}
  workflow:
    - {{step: judge, type: action, action: judge, confidence_gate: true}}
"""
FAILING_ONCE = PAYING_ANSWERS | {"POST /receipt": [{"status": 500, "text": "boom"}, {"json": {"ok": True}}]}


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SpecFile, FakeTools]]:
    monkeypatch.setenv("PAY_TOKEN", "tok")
    with FakeTools(FAILING_ONCE) as tools:
        yield write_spec(tmp_path, PAYING, url=tools.url), tools


def test_bad_input_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, ASKING)
    with pytest.raises(Invalid):
        start_run(spec, input="nul \0", actor=STARTER)
    with pytest.raises(Invalid):
        start_run(spec, input="half \ud800", actor=STARTER)
    with pytest.raises(TooLarge):
        start_run(spec, input="x" * (1024 * 1024 + 1), actor=STARTER)
    with pytest.raises(Invalid, match="nope"):
        start_run(spec, input="go", actor=STARTER, overrides={"nope": 1})
    assert (Run.objects.count(), SpecVersion.objects.count()) == (0, 0)


def test_a_run_without_its_models_key_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    text = ASKING.replace(
        "{{provider: ollama, name: test-model}}", '{{provider: openai, name: m, api_key: "${{SOME_KEY}}"}}'
    )
    with pytest.raises(ModelUnavailable, match="SOME_KEY"):
        begin(write_spec(tmp_path, text))
    assert Run.objects.count() == 0


def test_an_idempotency_key_starts_one_run_a_day(tmp_path: Path, clock: Clock) -> None:
    spec = write_spec(tmp_path, ASKING)
    first = start_run(spec, input="a", actor=STARTER, idempotency_key="k")
    again = start_run(spec, input="a", actor=STARTER, idempotency_key="k")
    assert (first.repeated, again.repeated, again.run.pk) == (False, True, first.run.pk)
    clock.advance(24 * 3600 + 1)
    assert not start_run(spec, input="a", actor=STARTER, idempotency_key="k").repeated


def test_an_idempotency_key_of_another_request_is_refused(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, ASKING)
    start_run(spec, input="a", actor=STARTER, idempotency_key="k")
    with pytest.raises(Invalid, match="another request"):
        start_run(spec, input="b", actor=STARTER, idempotency_key="k")
    assert Run.objects.count() == 1


def test_unknown_ids_are_not_found() -> None:
    for text in ("", "nonsense", "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(RunNotFound):
            find_run(text)


def test_a_run_goes_on_with_its_own_text_when_the_file_changes(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    run = begin(spec)
    spec.path.write_text(spec.text.replace("Go on with", "Stop"))
    work()
    assert run_state(run)["pendingApproval"]["reason"] == "Go on with go?"


def test_a_queued_run_is_cancelled_before_it_does_anything(tmp_path: Path, people: People) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    with pytest.raises(Invalid):
        cancel_run(run, actor=acting(people.operator), reason="nul \0")
    cancel_run(run, actor=acting(people.operator), reason="not needed")
    assert work() == 0
    state = run_state(run)
    assert state["status"] == "cancelled"
    assert "not needed" in state["error"]
    assert AuditEntry.objects.get().act == "cancel"
    with pytest.raises(NotPossible):
        cancel_run(run, actor=acting(people.operator))


def test_a_running_run_that_is_cancelled_meets_the_fence(tmp_path: Path, people: People) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    held = claim(run.workspace, str(run.uuid))
    assert held is not None
    journal = RunJournal(held)
    cancel_run(run, actor=acting(people.operator))
    with pytest.raises(LeaseLost):
        journal.interrupt("too late")
    assert run_state(run)["status"] == "cancelled"


def test_a_lease_is_never_written_earlier_than_the_one_stored(tmp_path: Path, clock: Clock) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    held = claim(run.workspace, str(run.uuid))
    assert held is not None
    before = Run.objects.get(pk=run.pk).lease_until
    clock.advance(-3600)
    RunJournal(held)._write()
    after = Run.objects.get(pk=run.pk).lease_until
    assert before is not None
    assert after is not None
    assert after >= before


def test_a_failed_step_keeps_its_decision_and_is_retried_without_asking(
    failing: tuple[SpecFile, FakeTools], people: People
) -> None:
    spec, tools = failing
    run, key = to_pause(spec)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    failed = newest(run)
    assert (failed.status, failed.step) == (Status.FAILED, "receipt")
    with pytest.raises(Invalid):
        retry_run(failed, actor=acting(people.operator), reason=" ")
    retry_run(failed, actor=acting(people.operator), reason="they are back")
    work()
    state = run_state(run)
    assert state["status"] == "completed"
    assert [record["step"] for record in state["trace"]] == ["look", "pay", "receipt"]
    assert [request.url.rpartition("/")[2] for request in tools.requests] == ["invoice", "pay", "receipt", "receipt"]
    with pytest.raises(NotPossible):
        retry_run(failed, actor=acting(people.operator), reason="again")


def test_a_retry_is_refused_under_a_changed_spec(failing: tuple[SpecFile, FakeTools], people: People) -> None:
    spec, _ = failing
    run, key = to_pause(spec)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    spec.path.write_text(spec.text.replace("Pay what is due", "Pay"))
    with pytest.raises(SpecChanged):
        retry_run(newest(run), actor=acting(people.operator), reason="again")


def test_a_retried_run_keeps_the_output_that_it_made_itself(tmp_path: Path, people: People) -> None:
    answers = [{"result": {"n": 1}, "confidence": 0.5}, {"result": {"n": 2}, "confidence": 0.9}]
    with FakeModels({"judge": answers}) as models:
        text = HEAD.replace("test-model}}", 'test-model, base_url: "{url}"}}') + GUARDED
        run = begin(write_spec(tmp_path, text, url=models.url))
        work()
        own = run_json(run, own=True)["state"]
        assert own["trace"][0]["output"] == {"n": 1, "confidence": 0.5}
        retry_run(run, actor=acting(people.operator), reason="ask the model again")
        assert run_json(run, own=True)["state"] == own
        work()
    assert run_json(run, own=True)["state"] == own
    assert run_state(run)["finalOutput"] == {"judge": {"n": 2, "confidence": 0.9}}


def test_an_interrupted_run_is_given_up_as_failed(tmp_path: Path, people: People, clock: Clock) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    Run.objects.filter(pk=run.pk).update(takeovers=F("takeovers") + 2)
    assert claim(run.workspace, str(run.uuid)) is not None
    clock.advance(61)
    assert recover().interrupted == 1
    give_up_run(run, actor=acting(people.operator), reason="too old")
    state = run_state(run)
    assert state["status"] == "failed"
    assert "too old" in state["error"]
    assert AuditEntry.objects.get().act == "give_up"


def test_a_long_chain_is_read_without_a_step_down_for_each_link(tmp_path: Path) -> None:
    run = first = begin(write_spec(tmp_path, ASKING))
    for _ in range(1200):
        following = Run.objects.get(pk=run.pk)
        following.pk, following.uuid, following.resumed_from_id = None, uuid.uuid4(), run.pk
        following._state.adding = True
        following.save()
        Run.objects.filter(pk=run.pk).update(status=Status.RESUMED, resumed_as_id=following.pk)
        run = following
    assert own_state(first)["status"] == "running"


def test_a_run_whose_approval_expired_is_not_cancelled_as_well(tmp_path: Path, people: People, clock: Clock) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    clock.advance(8 * 24 * 3600)
    with pytest.raises(NotPossible, match="expired"):
        cancel_run(run, actor=acting(people.operator), reason="late")
    before = decision_of(key)
    assert expire_due() == 1
    assert decision_of(key) == before
    assert before is not None
    assert before["outcome"] == "expired"
    assert run_state(run)["status"] == "expired"


def test_a_paused_run_keeps_its_approval_after_a_refused_retry(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    with pytest.raises(NotPossible):
        retry_run(run, actor=acting(people.operator), reason="why not")
    with pytest.raises(NotPossible):
        give_up_run(run, actor=acting(people.operator), reason="why not")
    decide(key, approved=True, actor=acting(people.approver))
