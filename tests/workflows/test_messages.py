"""Messages to workers: sent with the run, taken once, tidied away (design 4, background)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from statestore.clock import now
from tests.conftest import Clock
from workflows import messages
from workflows.models import Run
from workflows.tasks import advance_run, enqueue
from workflows.wakeup import bell

pytestmark = pytest.mark.django_db(transaction=True)


def queued_run(**fields: Any) -> Run:
    """A queued run without a spec: messages look at nothing else."""
    given = {"agent_id": "clerk", "spec_hash": "0" * 64, "created_at": now(), "queued_at": now()}
    return Run.objects.create(**(given | fields))


def in_threads(count: int, work: Callable[[], None]) -> None:
    def alone() -> None:
        try:
            work()
        finally:
            connection.close()

    threads = [threading.Thread(target=alone) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_message_carries_workspace_and_run_id_and_nothing_else() -> None:
    run = queued_run(workspace="north")
    enqueue(run)
    assert DBTaskResult.objects.get().args_kwargs == {"args": ["north", str(run.uuid)], "kwargs": {}}
    assert messages.take() == ("north", str(run.uuid))
    assert messages.take() is None


def test_a_message_is_rolled_back_with_its_run() -> None:
    with transaction.atomic():
        enqueue(queued_run())
        transaction.set_rollback(True)
    assert messages.take() is None


def test_it_wakes_idle_workers_only_once_the_message_can_be_seen() -> None:
    heard = bell.rings
    with transaction.atomic():
        enqueue(queued_run())
        assert bell.rings == heard
    assert bell.rings == heard + 1


def test_no_message_is_taken_twice_by_eight_workers() -> None:
    runs = [queued_run() for _ in range(60)]
    for run in runs:
        enqueue(run)
    taken: Counter[str] = Counter()
    lock = threading.Lock()

    def take_all() -> None:
        empty = 0
        while empty < 3:
            message = messages.take()
            if message is None:
                empty += 1
                continue
            with lock:
                taken[message[1]] += 1

    in_threads(8, take_all)
    assert taken == Counter(str(run.uuid) for run in runs)


def test_an_idle_look_takes_no_write_lock() -> None:
    """On SQLite a writer would have to wait for it; so look while somebody else writes."""
    looked = threading.Event()

    def look() -> None:
        messages.take()
        looked.set()

    with transaction.atomic():
        queued_run()
        thread = threading.Thread(target=in_threads, args=(1, look))
        thread.start()
        assert looked.wait(30)
    thread.join()


def test_a_run_that_waits_for_its_time_gets_its_message_then() -> None:
    run = queued_run(not_before=now() + timedelta(hours=1))
    enqueue(run)
    assert messages.take() is None
    due = DBTaskResult.objects.get().run_after
    assert abs(due - timezone.now() - timedelta(hours=1)) < timedelta(seconds=5)


def test_the_tests_clock_moves_the_time_at_which_a_message_is_due(clock: Clock) -> None:
    run = queued_run(not_before=now() + timedelta(hours=1))
    clock.advance(3601)
    enqueue(run)
    assert messages.take() == ("default", str(run.uuid))


def test_a_run_that_is_queued_after_its_turn_gets_another_message() -> None:
    run = queued_run(not_before=now() + timedelta(hours=1))
    advance_run.call(run.workspace, str(run.uuid))
    assert DBTaskResult.objects.get().args_kwargs["args"][1] == str(run.uuid)


def test_a_message_that_names_no_run_is_dropped_and_the_next_one_taken() -> None:
    run = queued_run()
    enqueue(run)
    good = DBTaskResult.objects.get()
    DBTaskResult.objects.create(
        args_kwargs={"args": [7], "kwargs": {}},
        task_path=good.task_path,
        queue_name=good.queue_name,
        backend_name=good.backend_name,
        run_after=good.run_after,
        priority=50,
    )
    assert messages.take() == ("default", str(run.uuid))
    assert messages.take() is None


def test_the_messages_of_others_in_the_queue_are_left_alone() -> None:
    enqueue(queued_run())
    DBTaskResult.objects.update(task_path="somebody.else")
    assert messages.take() is None


def test_old_rows_of_other_workers_are_pruned_and_waiting_ones_kept() -> None:
    for status in ("RUNNING", "SUCCESSFUL", "FAILED"):
        enqueue(queued_run())
        DBTaskResult.objects.filter(status="READY").update(status=status)
    enqueue(queued_run())
    assert messages.prune() == 0
    DBTaskResult.objects.update(enqueued_at=timezone.now() - timedelta(days=2))
    assert messages.prune() == 3
    assert DBTaskResult.objects.get().status == "READY"
