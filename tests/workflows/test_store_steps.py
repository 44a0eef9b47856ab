"""`once`, `open` and `close` through the worker, on both databases: scopes, lifetimes, chains, kinds of keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.services import decide
from statestore.store import StateStore
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, begin, to_pause, work
from tests.workflows.storing import (
    ANSWERS,
    ASK_STEP,
    CLOSE_STEP,
    ONCE_STEP,
    OPEN_STEP,
    POST_STEP,
    a_spec,
    done,
    keys,
    output,
    told,
)
from workflows.advance import advance
from workflows.engine.events import Event, StepCompleted
from workflows.models import RunEvent, Status
from workflows.reading import run_state
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as service:
        yield service


def test_once_goes_on_the_first_time_only(tmp_path: Path, tools: FakeTools) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, POST_STEP, url=tools.url)
    first, repeat, other = done(spec, "a"), done(spec, "a"), done(spec, "b")
    assert {run.status for run in (first, repeat, other)} == {Status.COMPLETED}
    assert output(first, "first") == {"first": True} == output(other, "first")
    assert run_state(repeat)["finalOutput"] == {"first": {"first": False, "run": str(first.uuid)}}
    assert len(tools.requests) == 2
    assert keys() == {"once:a": {"run": str(first.uuid)}, "once:b": {"run": str(other.uuid)}}
    events = RunEvent.objects.filter(run=repeat).order_by("number").values_list("type", flat=True)
    assert list(events) == ["step_started", "step_completed", "completed"]


def test_a_repeat_goes_on_where_the_spec_says_so(tmp_path: Path, tools: FakeTools) -> None:
    step = ONCE_STEP.replace("ttl: 1d", "ttl: 1d, on_repeat: continue")
    spec = a_spec(tmp_path, step, POST_STEP, url=tools.url)
    first, repeat = done(spec), done(spec)
    assert output(repeat, "first") == {"first": False, "run": str(first.uuid)}
    assert output(repeat, "post") == {"done": True}
    assert len(tools.requests) == 2


def test_a_repeat_that_breaks_off_at_its_end_is_not_retried_past_its_step(
    tmp_path: Path, tools: FakeTools, people: People
) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, POST_STEP, url=tools.url)
    done(spec)
    run = begin(spec, input="k")

    def breaks(event: Event) -> None:
        if isinstance(event, StepCompleted):
            raise RuntimeError("whoever listens here broke")

    advance(run.workspace, str(run.uuid), tell=breaks)
    run.refresh_from_db()
    assert (run.status, run.step_index) == (Status.INTERRUPTED, 0)
    retry_run(run, actor=acting(people.operator), reason="again")
    work()
    assert newest(run).status == Status.COMPLETED
    assert len(tools.requests) == 1


def test_a_key_is_free_again_when_its_time_is_over(tmp_path: Path, clock: Clock) -> None:
    spec = a_spec(tmp_path, ONCE_STEP)
    done(spec)
    clock.advance(86_399)
    assert output(done(spec), "first")["first"] is False
    clock.advance(2)
    assert output(done(spec), "first") == {"first": True}


def test_open_and_close_of_an_incident(tmp_path: Path) -> None:
    opens, closes = a_spec(tmp_path, OPEN_STEP), a_spec(tmp_path, CLOSE_STEP)
    first, second = done(opens), done(opens)
    opened = output(first, "open")
    assert opened["opened"] is True
    incident = opened["incident"]
    assert list(incident) == ["key", "value", "openedAt", "runId"]
    assert (incident["key"], incident["value"], incident["runId"]) == ("k", {"about": "k"}, str(first.uuid))
    assert incident["openedAt"].endswith("Z")
    assert output(second, "open") == {"opened": False, "incident": incident}
    closing, again = done(closes), done(closes)
    assert output(closing, "close") == {"closed": True, "incident": incident}
    assert output(again, "close") == {"closed": False}
    assert keys() == {}
    assert output(done(opens), "open")["opened"] is True


def test_an_incident_ends_with_its_time_and_stays_without_one(tmp_path: Path, clock: Clock) -> None:
    spec = a_spec(tmp_path, OPEN_STEP)
    for_ever = a_spec(tmp_path, OPEN_STEP.replace(", ttl: 7d", ""), agent_id="other")
    done(spec), done(for_ever)
    clock.advance(7 * 86_400 + 1)
    assert output(done(spec), "open")["opened"] is True
    assert output(done(for_ever), "open")["opened"] is False


def test_the_same_chain_that_asks_again_is_answered_as_the_first(tmp_path: Path) -> None:
    again = [ONCE_STEP.replace("first", "again"), OPEN_STEP.replace("step: open", "step: reopen")]
    run = done(a_spec(tmp_path, ONCE_STEP, OPEN_STEP, *again))
    assert output(run, "again") == {"first": True}
    assert output(run, "reopen") == output(run, "open")
    assert output(run, "open")["opened"] is True


def test_two_agents_and_two_workspaces_have_keys_of_their_own(tmp_path: Path) -> None:
    one = a_spec(tmp_path, ONCE_STEP, OPEN_STEP)
    two = a_spec(tmp_path, ONCE_STEP, OPEN_STEP, agent_id="other")
    runs = [done(one), done(two)]
    runs.append(begin(one, input="k", workspace="elsewhere"))
    work()
    for run in runs:
        assert output(newest(run), "first") == {"first": True}
        assert output(newest(run), "open")["opened"] is True
    assert keys().keys() == keys("other").keys() == keys(workspace="elsewhere").keys() == {"once:k", "incident:k"}


@pytest.mark.parametrize("key", ["approval:x", "once:x", "incident:x", "lock:x", "x"])
def test_kinds_of_keys_do_not_meet(tmp_path: Path, key: str) -> None:
    StateStore("default", "clerk").put("x", "an author's own")
    run = done(a_spec(tmp_path, ONCE_STEP, OPEN_STEP), key)
    assert output(run, "first") == {"first": True}
    assert output(run, "open")["opened"] is True
    assert keys().keys() == {f"once:{key}", f"incident:{key}"}
    assert StateStore("default", "clerk").get("x") == "an author's own"
    assert StateStore("default", "clerk").list() == ("x",)


@pytest.mark.parametrize(
    ("key", "words"),
    [("", 'its key "" is empty'), ("x" * 401, "takes 401 bytes; a key has at most 400"), ("ä" * 200, None)],
)
@pytest.mark.parametrize("step", [ONCE_STEP, OPEN_STEP, CLOSE_STEP])
def test_a_bad_key_fails_the_step_and_writes_nothing(tmp_path: Path, step: str, key: str, words: str | None) -> None:
    run = done(a_spec(tmp_path, step), key)
    if words is None:
        assert run.status == Status.COMPLETED
        return
    assert run.status == Status.FAILED
    assert words in run.error
    assert keys() == {}


@pytest.mark.parametrize("fingerprint", ['"a\\u0000b"', '"a\\ud800"', "[1]", "null", '" "'])
def test_a_bad_key_from_the_trigger_fails_the_step_with_a_text_that_can_be_kept(
    tmp_path: Path, fingerprint: str
) -> None:
    step = ONCE_STEP.replace("{{ input }}", "{{ trigger.fingerprint }}")
    run = begin(a_spec(tmp_path, step), input=f'{{"fingerprint": {fingerprint}}}')
    work()
    assert newest(run).status == Status.FAILED
    assert 'Step "first"' in newest(run).error
    assert keys() == {}


def test_a_resume_after_an_approval_asks_nothing_again(tmp_path: Path, people: People, clock: Clock) -> None:
    spec = a_spec(tmp_path, ONCE_STEP, OPEN_STEP, ASK_STEP, CLOSE_STEP)
    run, key = to_pause(spec, input="k")
    clock.advance(86_401)  # the key is free by then, and somebody else takes it
    other = begin(spec, input="k")
    work()
    decide(key, approved=True, actor=acting(people.approver))
    work()
    last = newest(run)
    assert (last.status, run_state(last)["finalOutput"]["first"]) == (Status.COMPLETED, {"first": True})
    closed = output(last, "close")
    assert (closed["closed"], closed["incident"]["runId"]) == (True, str(run.uuid))
    assert output(newest(other), "first") == {"first": True}
    assert told(last, "first") == told(last, "open") == 1, "replayed once, for those who watch"
