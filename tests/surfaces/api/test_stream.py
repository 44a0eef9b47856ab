"""Event streams over a real server: what is told, in which order, and when it ends."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db.backends.base.base import BaseDatabaseWrapper

from approvals.models import ApiToken
from approvals.services import decide
from tests.conftest import People
from tests.surfaces.api.conftest import Callers, until
from tests.surfaces.api.streams import stream
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.draining import draining
from workflows.live import tailer
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)


def address(server: str, run: Run | str) -> str:
    return f"{server}/runs/{getattr(run, 'uuid', run)}/events"


def approve(run: Run, people: People, approved: bool = True) -> Run:
    """A decision made elsewhere."""
    return decide(key_of(run), approved=approved, actor=acting(people.approver)).run


def test_the_state_comes_first_and_then_every_event_once(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run = begin(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        assert events.response.headers["Content-Type"] == "text/event-stream"
        assert "no-store" in events.response.headers["Cache-Control"]
        first = events.next()
        assert first.data == {"type": "state", "state": {"status": "running", "trace": []}}
        assert first.id == f"{run.uuid}/0"
        work()
        started, waiting = events.next(), events.next()
        assert [started.kind, waiting.kind] == ["step_started", "awaiting_approval"]
        assert [started.id, waiting.id] == [f"{run.uuid}/1", f"{run.uuid}/2"]
        assert waiting.data["event"]["key"] == key_of(run)
        assert waiting.data["state"]["status"] == "awaiting_approval"
        second = approve(run, people)
        work()
        told = [events.next() for _ in range(4)]
        assert [frame.kind for frame in told] == ["step_started", "step_completed", "step_started", "awaiting_approval"]
        assert [frame.id for frame in told] == [f"{second.uuid}/{number}" for number in range(1, 5)]
        assert told[1].data["state"]["trace"] == [
            {"step": "first", "status": "completed", "output": {"approved": True}}
        ]
        third = approve(second, people)
        work()
        ending = events.rest()
        assert [frame.kind for frame in ending][-1] == "completed"
        assert ending[-1].id == f"{third.uuid}/{len(ending)}"
        assert ending[-1].data["state"] == callers.requester.get(f"/runs/{run.uuid}").json()["state"]
    until(lambda: not tailer.running)


def test_a_rejection_ends_the_stream_of_the_old_id(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run, _ = to_pause(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        assert events.next().data["state"]["status"] == "awaiting_approval"
        approve(run, people, approved=False)
        (last,) = events.rest()
        assert (last.kind, last.data["state"]["status"]) == ("rejected", "rejected")


def test_a_finished_run_is_one_frame_and_coming_back_with_it_is_204(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run, _ = to_pause(clerk)
    final = approve(run, people, approved=False)
    with stream(address(server, run), callers.requester.headers) as events:
        (only,) = events.rest()
    assert (only.kind, only.data["state"]["status"]) == ("state", "rejected")
    assert only.id.startswith(str(final.uuid))
    again = httpx2.get(address(server, run), headers=callers.requester.headers | {"Last-Event-ID": only.id})
    assert (again.status_code, again.content) == (204, b"")


def test_coming_back_goes_on_after_the_frame_that_was_seen(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run, _ = to_pause(clerk)
    second = approve(run, people)
    work()
    headers = callers.requester.headers | {"Last-Event-ID": f"{run.uuid}/1"}
    with stream(address(server, run), headers) as events:
        told = [events.next() for _ in range(5)]
        assert [frame.id for frame in told] == [f"{run.uuid}/2", *(f"{second.uuid}/{n}" for n in range(1, 5))]
        approve(second, people, approved=False)
        assert [frame.kind for frame in events.rest()][-1] == "rejected"
    for given in (
        "x",
        f"{run.uuid}",
        f"{run.uuid}/x",
        f"{run.uuid}/-1",
        f"{run.uuid}/99",
        f"{begin(clerk).uuid}/0",
        "/1",
    ):
        refused = httpx2.get(address(server, run), headers=callers.requester.headers | {"Last-Event-ID": given})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid"), given


def test_nothing_is_lost_or_doubled_while_events_rush_past_a_connecting_client(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run, _ = to_pause(clerk)
    opened = threading.Event()
    with stream(address(server, run), callers.requester.headers) as early:
        second = approve(run, people)
        work()
        with stream(address(server, run), callers.requester.headers) as late:
            opened.set()
            approve(second, people)
            work()
            ids = [frame.id for frame in late.rest()]
        all_ids = [frame.id for frame in early.rest()]
    assert len(all_ids) == len(set(all_ids))
    assert len(ids) == len(set(ids))
    assert all_ids[-len(ids) + 1 :] == ids[1:]


def test_a_deactivated_user_gets_no_further_event(
    server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run = begin(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        events.next()
        until(lambda: tailer.watchers)
        User.objects.filter(pk=people.requester.pk).update(is_active=False)
        work()
        assert events.rest() == []
        assert events.comments == [": not allowed any more"]


@pytest.mark.parametrize("taken", ["token", "permission"])
def test_a_right_that_was_taken_away_ends_the_stream_soon(
    taken: str, server: str, callers: Callers, people: People, clerk: SpecFile
) -> None:
    run = begin(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        events.next()
        until(lambda: tailer.watchers)
        if taken == "token":
            ApiToken.objects.filter(user=people.requester).delete()
        else:
            people.requester.user_permissions.clear()
        assert events.rest() == []


def test_a_client_that_leaves_is_forgotten_and_the_reader_sleeps(
    server: str, callers: Callers, clerk: SpecFile
) -> None:
    run = begin(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        events.next()
        until(lambda: tailer.watchers == 1)
        assert tailer.running
    until(lambda: tailer.watchers == 0)
    until(lambda: not tailer.running)


def test_a_server_that_drains_ends_its_streams_cleanly(server: str, callers: Callers, clerk: SpecFile) -> None:
    run = begin(clerk)
    with stream(address(server, run), callers.requester.headers) as events:
        events.next()
        until(lambda: tailer.watchers)
        draining.set()
        assert events.rest() == []
        assert events.comments == [": the server is going away; connect again"]
    refused = httpx2.get(address(server, run), headers=callers.requester.headers)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")


def test_a_quiet_stream_has_a_heartbeat(
    server: str, callers: Callers, clerk: SpecFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflows.api.streamview.HEARTBEAT_SECONDS", 0.2)
    with stream(address(server, begin(clerk)), callers.requester.headers) as events:
        events.next()
        until(lambda: len(events.comments) > 1)
        assert set(events.comments) == {": still here"}


def test_many_streams_hold_no_database_connection(server: str, callers: Callers, clerk: SpecFile) -> None:
    def open_connections() -> int:
        gc.collect()
        found = [one for one in gc.get_objects() if isinstance(one, BaseDatabaseWrapper)]
        return sum(one.connection is not None for one in found)

    run = begin(clerk)
    before = open_connections()
    opened = [stream(address(server, run), callers.requester.headers) for _ in range(12)]
    for one in opened:
        one.__enter__().next()
    try:
        until(lambda: tailer.watchers == 12)
        assert open_connections() <= before + 2
    finally:
        for one in opened:
            one.__exit__(None, None, None)


def test_a_head_request_opens_no_stream(server: str, callers: Callers, clerk: SpecFile) -> None:
    response = httpx2.head(address(server, begin(clerk)), headers=callers.requester.headers)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["Content-Type"] == "text/event-stream"
    assert tailer.watchers == 0


def test_the_watched_runs_are_read_in_one_query_a_turn(
    server: str, callers: Callers, clerk: SpecFile, tmp_path: Path
) -> None:
    first, second = begin(clerk), begin(clerk)
    with (
        stream(address(server, first), callers.requester.headers) as one,
        stream(address(server, second), callers.requester.headers) as two,
    ):
        one.next(), two.next()
        until(lambda: tailer.watchers == 2)
        assert [thread.name for thread in threading.enumerate()].count("kampong-tailer") == 1
        work()
        assert one.next().id == f"{first.uuid}/1"
        assert two.next().id == f"{second.uuid}/1"


def test_another_method_is_refused_in_the_one_shape(server: str, callers: Callers, clerk: SpecFile) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = httpx2.request(method, address(server, begin(clerk)), headers=callers.requester.headers)
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "GET, HEAD"
