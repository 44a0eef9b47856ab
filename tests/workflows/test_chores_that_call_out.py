"""A chore that waits for a service outside keeps no other chore waiting (scenario 23)."""

from __future__ import annotations

import threading

import pytest

from tests.served import until
from workflows import housekeeping
from workflows.worker import WorkerPool


@pytest.mark.django_db(transaction=True)
def test_a_service_that_hangs_delays_no_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_chores", {})
    going, done = threading.Event(), threading.Event()
    turns: list[int] = []

    def hang() -> int:
        going.set()
        done.wait(60)
        return 0

    def expire() -> int:
        turns.append(1)
        return 1

    housekeeping.register("notices", 0.01, hang, calls_out=True)
    housekeeping.register("expiry", 0.01, expire)
    pool = WorkerPool(1)
    pool.start()
    try:
        assert going.wait(30)
        before = len(turns)
        until(lambda: len(turns) > before + 3, 30)
        assert not done.is_set()
    finally:
        done.set()
        assert pool.stop(20) == ()
