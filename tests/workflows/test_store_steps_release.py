"""A key is given back only by a chain that ends `failed` and called nobody but by GET (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest
from approvals.services import decide
from statestore.clock import DbNow
from tests.conftest import Clock, People
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from tests.workflows.storing import (
    ANSWERS,
    ASK_STEP,
    FAIL_STEP,
    LOOK_STEP,
    MODEL_STEP,
    ONCE_STEP,
    OPEN_STEP,
    POST_STEP,
    a_spec,
    done,
    keys,
    output,
)
from workflows.errors import NotPossible
from workflows.models import Attempt, Run, Status
from workflows.recovery import recover
from workflows.registry import SpecFile, read_spec
from workflows.runs import cancel_run, give_up_run, newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

FREE, KEPT = False, True


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as service:
        yield service


def held(key: str = "k") -> bool:
    return f"once:{key}" in keys()


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ((FAIL_STEP,), FREE),
        ((LOOK_STEP, FAIL_STEP), FREE),
        ((OPEN_STEP, FAIL_STEP), FREE),
        ((POST_STEP, FAIL_STEP), KEPT),
        (
            ("{step: odd, type: condition, if: trigger.missing, then: execute_tool(post), else: execute_tool(look)}",),
            FREE,
        ),
        ((LOOK_STEP,), KEPT),
        ((), KEPT),
    ],
)
def test_what_the_run_called_decides(tmp_path: Path, tools: FakeTools, steps: tuple[str, ...], kept: bool) -> None:
    run = done(a_spec(tmp_path, ONCE_STEP, *steps, url=tools.url))
    failed = any(step == FAIL_STEP or "missing" in step for step in steps)
    assert run.status == (Status.FAILED if failed else Status.COMPLETED), run.error
    assert held() is kept


def test_a_post_that_failed_was_a_call_all_the_same(tmp_path: Path) -> None:
    with FakeTools({"POST /post": {"status": 500, "json": {}}}) as tools:
        run = done(a_spec(tmp_path, ONCE_STEP, POST_STEP, url=tools.url))
    assert (run.status, held()) == (Status.FAILED, KEPT)


def test_a_post_before_the_key_was_taken_counts_too(tmp_path: Path, tools: FakeTools) -> None:
    run = done(a_spec(tmp_path, POST_STEP, ONCE_STEP, FAIL_STEP, url=tools.url))
    assert (run.status, held()) == (Status.FAILED, KEPT)


def test_a_model_that_was_asked_keeps_the_key(tmp_path: Path) -> None:
    with FakeModels() as models:
        models.answers["think"] = "hm"
        spec = a_spec(tmp_path, ONCE_STEP, MODEL_STEP, FAIL_STEP)
        text = spec.path.read_text(encoding="utf-8").replace("test-model}", f'test-model, base_url: "{models.url}"}}')
        spec.path.write_text(text, encoding="utf-8")
        run = done(read_spec(spec.path))
    assert (run.status, held()) == (Status.FAILED, KEPT)
    assert not Attempt.objects.filter(safe=True, kind="model").exists()


def test_a_step_can_say_that_it_keeps_its_key(tmp_path: Path, tools: FakeTools) -> None:
    keeps = '{step: keeps, type: once, key: "kept", ttl: 1d, release_on_failure: false}'
    run = done(a_spec(tmp_path, ONCE_STEP, keeps, FAIL_STEP, url=tools.url))
    assert run.status == Status.FAILED
    assert (held("k"), held("kept")) == (FREE, KEPT)


def test_only_its_own_key_is_given_back(tmp_path: Path, tools: FakeTools, people: People, clock: Clock) -> None:
    """Its time was over while it waited, and another chain has it: that one keeps it."""
    spec = a_spec(tmp_path, ONCE_STEP, ASK_STEP, FAIL_STEP, url=tools.url)
    run, key = to_pause(spec, input="k")
    clock.advance(86_401)
    other = begin(spec, input="k")
    work()
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert newest(run).status == Status.FAILED
    assert keys() == {"once:k": {"run": str(other.uuid)}}


def test_a_repeat_that_fails_gives_nothing_back(tmp_path: Path, tools: FakeTools) -> None:
    first = done(a_spec(tmp_path, ONCE_STEP))
    step = ONCE_STEP.replace("ttl: 1d", "ttl: 1d, on_repeat: continue")
    assert done(a_spec(tmp_path, step, FAIL_STEP, url=tools.url)).status == Status.FAILED
    assert keys() == {"once:k": {"run": str(first.uuid)}}


# Ends of a chain that waited ---------------------------------------------------------------------------------


def waiting(folder: Path, tools: FakeTools, *, ask: str = ASK_STEP, before: tuple[str, ...] = ()) -> tuple[Run, str]:
    return to_pause(a_spec(folder, ONCE_STEP, *before, ask, FAIL_STEP, url=tools.url), input="k")


def test_a_failure_behind_an_approval(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run, key = waiting(tmp_path, tools)
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert (newest(run).status, held()) == (Status.FAILED, FREE)


def test_a_failure_behind_an_approval_of_a_chain_that_posted(tmp_path: Path, tools: FakeTools, people: People) -> None:
    """The call was made by the run ahead of the pause."""
    run, key = waiting(tmp_path, tools, before=(POST_STEP,))
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert (newest(run).status, held()) == (Status.FAILED, KEPT)


def test_a_call_that_a_decision_beside_the_run_made_counts(tmp_path: Path, tools: FakeTools, people: People) -> None:
    record = "{step: note, type: approval, mode: record, on_decision: {approved: execute_tool(post)}}"
    for called in (False, True):
        run = begin(a_spec(tmp_path, ONCE_STEP, record, ASK_STEP, FAIL_STEP, url=tools.url), input="k")
        work()
        noted, asked = ApprovalRequest.objects.filter(run=run).order_by("pk")
        if called:
            decide(str(noted.key), approved=True, actor=acting(people.approver))
            work()
            assert [request.method for request in tools.requests].count("POST") == 1
        decide(str(asked.key), approved=True, actor=acting(people.approver))
        work()
        assert (newest(run).status, held()) == (Status.FAILED, called)


def test_a_rejection_a_cancel_and_an_expiry_keep_it(
    tmp_path: Path, tools: FakeTools, people: People, clock: Clock
) -> None:
    for number, end in enumerate(("reject", "cancel", "expire")):
        folder = tmp_path / str(number)
        folder.mkdir()
        spec = a_spec(folder, ONCE_STEP, "{step: ask, type: approval, expires_in: 1h}", url=tools.url)
        run, key = to_pause(spec, input=end)
        if end == "reject":
            decide(key, approved=False, reason="no", actor=acting(people.approver))
        elif end == "cancel":
            cancel_run(run, actor=acting(people.operator))
        else:
            clock.advance(3601)
            expire_due()
        assert newest(run).status == {"reject": "rejected", "cancel": "cancelled", "expire": "expired"}[end]
        assert held(end) is KEPT


def test_an_expiry_that_fails_the_run_gives_it_back(tmp_path: Path, tools: FakeTools, clock: Clock) -> None:
    run, _ = waiting(tmp_path, tools, ask="{step: ask, type: approval, expires_in: 1h, on_expire: fail}")
    clock.advance(3601)
    expire_due()
    assert (newest(run).status, held()) == (Status.FAILED, FREE)


def test_an_interrupted_run_keeps_it_until_it_is_given_up(tmp_path: Path, tools: FakeTools, people: People) -> None:
    for step, kept in ((LOOK_STEP, FREE), (POST_STEP, KEPT)):
        run = interrupted(a_spec(tmp_path, ONCE_STEP, step, url=tools.url), safe=step == LOOK_STEP)
        assert held() is KEPT
        give_up_run(run, actor=acting(people.operator), reason="no use")
        assert (newest(run).status, held()) == (Status.FAILED, kept)


def interrupted(spec: SpecFile, *, safe: bool) -> Run:
    """A run that took its key and whose worker was lost during the call behind it."""
    run = begin(spec, input="k")
    work()
    attempt = Attempt.objects.get(run=run)
    assert attempt.safe is safe
    attempt.ended_at = None
    attempt.save()
    Run.objects.filter(pk=run.pk).update(status=Status.RUNNING, lease_until=DbNow(-1), step_index=1)
    assert recover().interrupted == 1
    run.refresh_from_db()
    return run


# Once more ---------------------------------------------------------------------------------------------------


def test_a_retry_takes_its_key_again(tmp_path: Path, tools: FakeTools, people: People) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, LOOK_STEP, FAIL_STEP, url=tools.url)
    run = done(spec)
    assert held() is FREE
    tools.script["GET /fail"] = {"json": {"fine": True}}
    retry_run(run, actor=acting(people.operator), reason="it is back")
    assert keys() == {"once:k": {"run": str(run.uuid)}}, "before any worker has it"
    assert output(done(spec), "first")["first"] is False
    last = newest(run)
    assert (last.status, output(last, "first")) == (Status.COMPLETED, {"first": True})
    assert [request.url.rpartition("/")[2] for request in tools.requests].count("look") == 1


def test_a_retry_that_fails_gives_it_back_once_more(tmp_path: Path, tools: FakeTools, people: People) -> None:
    run = done(a_spec(tmp_path, ONCE_STEP, FAIL_STEP, url=tools.url))
    for _ in range(2):
        retry_run(newest(run), actor=acting(people.operator), reason="again")
        assert held() is KEPT
        work()
        assert (newest(run).status, held()) == (Status.FAILED, FREE)


def test_a_retry_asks_again_where_another_chain_has_the_key(tmp_path: Path, tools: FakeTools, people: People) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, ASK_STEP, FAIL_STEP, POST_STEP, url=tools.url)
    run, key = to_pause(spec, input="k")
    decide(key, approved=True, actor=acting(people.approver))
    work()
    other = begin(spec, input="k")
    work()
    retry_run(newest(run), actor=acting(people.operator), reason="again")
    work()
    last = newest(run)
    assert last.status == Status.COMPLETED
    assert output(last, "first") == {"first": False, "run": str(other.uuid)}
    assert keys() == {"once:k": {"run": str(other.uuid)}}
    assert not [request for request in tools.requests if request.method == "POST"]


def test_a_refused_retry_takes_nothing(tmp_path: Path, tools: FakeTools, people: People) -> None:
    """Somebody else retried it a moment earlier: all of it is taken back."""
    run = done(a_spec(tmp_path, ONCE_STEP, FAIL_STEP, url=tools.url))
    stale = Run.objects.get(pk=run.pk)
    retry_run(run, actor=acting(people.operator), reason="again")
    work()
    assert held() is FREE
    with pytest.raises(NotPossible):
        retry_run(stale, actor=acting(people.operator), reason="again")
    assert held() is FREE
