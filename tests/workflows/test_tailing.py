"""A tailer's thread: one, only while somebody watches, and never gone with somebody waiting for it."""

from __future__ import annotations

import threading

import pytest

from approvals.live.watching import TRY_AGAIN, QueueTailer
from approvals.live.watching import Closed as SocketClosed
from approvals.live.watching import Watch as SocketWatch
from tests.surfaces.api.conftest import until
from workflows.api.authentication import Standing
from workflows.live import Closed, Tailer, Watch

pytestmark = pytest.mark.django_db(transaction=True)

ENDS_THREAD = "ignore::pytest.PytestUnhandledThreadExceptionWarning"


class Unforeseen(Exception):
    """What no tailer knows."""


class BrokenQueueTailer(QueueTailer):
    broken = True

    def _turn(self) -> None:
        if self.broken:
            raise Unforeseen


class BrokenTailer(Tailer):
    broken = True

    def _turn(self) -> None:
        if self.broken:
            raise Unforeseen


@pytest.mark.filterwarnings(ENDS_THREAD)
def test_an_error_that_nobody_foresaw_sends_the_watchers_of_the_queue_away_and_the_next_is_served() -> None:
    tailer, told = BrokenQueueTailer(), list[object]()

    def deliver(item: object) -> bool:
        told.append(item)
        return True

    tailer.watch(SocketWatch(standings=frozenset(), deliver=deliver))
    until(lambda: not tailer.running and told)
    assert told == [SocketClosed(code=TRY_AGAIN)]
    assert tailer.watchers == 0
    tailer.broken = False
    again = SocketWatch(standings=frozenset(), deliver=deliver)
    tailer.watch(again)
    assert tailer.running
    assert [thread.name for thread in threading.enumerate()].count(tailer.name) == 1
    tailer.leave(again)
    until(lambda: not tailer.running)
    assert len(told) == 1


@pytest.mark.filterwarnings(ENDS_THREAD)
def test_an_error_that_nobody_foresaw_ends_the_streams_of_runs_and_the_next_is_served() -> None:
    tailer, told = BrokenTailer(), list[object]()

    def deliver(item: object) -> bool:
        told.append(item)
        return True

    def a_watch() -> Watch:
        return Watch(
            run_id=1, position=0, standing=Standing(user_id=0, token_digest=None, permission=""), deliver=deliver
        )

    tailer.watch(a_watch())
    until(lambda: not tailer.running and told)
    assert [isinstance(item, Closed) for item in told] == [True]
    tailer.broken = False
    again = a_watch()
    tailer.watch(again)
    assert tailer.running
    tailer.leave(again)
    until(lambda: not tailer.running)
