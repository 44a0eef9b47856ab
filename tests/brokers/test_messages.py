"""What goes over the broker decides nothing: messages that are lost, doubled, late or nonsense change no run."""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from django.db import transaction

from statestore.clock import DbNow
from tests.brokers.conftest import Place, calls, rabbitmq_only, wait_for_end
from tests.brokers.othertask import sweep
from tests.conftest import Clock
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.workbench import begin
from workflows.brokers import backend
from workflows.brokers.app import ADVANCE
from workflows.brokers.sending import sender
from workflows.models import Run, Status
from workflows.recovery import recover
from workflows.registry import SpecFile
from workflows.tasks import advance_run, enqueue
from workflows.worker import WorkerPool

pytestmark = pytest.mark.django_db(transaction=True)

Pools = Callable[..., WorkerPool]


class Trap:
    """Unpickled, it says so."""

    sprung: list[int] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return (Trap.sprung.append, (1,))


def body_of(run_id: str, workspace: str = "default") -> list[Any]:
    return [[workspace, run_id], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]


def test_a_run_is_driven_by_a_worker_of_the_broker(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools
) -> None:
    pools(2)
    runs = [begin(spec) for _ in range(count(4, 100))]
    wait_for_end(*runs)
    assert calls(tools) == {"one": len(runs), "two": len(runs)}


def test_a_message_carries_workspace_and_run_id_as_json_and_nothing_else(place: Place, spec: SpecFile) -> None:
    run = begin(spec, input="secret input")
    assert sender().flush(10)
    with place.channel() as channel:
        message = channel.basic_get(place.queue, no_ack=True)
    body = message.body if isinstance(message.body, str) else bytes(message.body).decode()
    assert message.content_type == "application/json"
    assert json.loads(body)[:2] == [["default", str(run.uuid)], {}]
    assert "secret input" not in str(message.headers) + body


def test_nothing_is_sent_for_what_was_rolled_back(place: Place, spec: SpecFile) -> None:
    with transaction.atomic():
        begin(spec)
        transaction.set_rollback(True)
    kept = begin(spec)
    assert sender().flush(10)
    assert Run.objects.get() == kept
    assert place.waiting() == 1


def test_doubled_stale_unknown_and_malformed_messages_change_nothing(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools, caplog: pytest.LogCaptureFixture
) -> None:
    first = begin(spec)
    assert sender().flush(10)
    good = {"task": ADVANCE, "serializer": "json"}
    for _ in range(5):
        place.publish(body_of(str(first.uuid)), **good)
    pool = pools(2)
    wait_for_end(first)
    Trap.sprung.clear()
    place.publish(body_of(str(first.uuid)), **good)
    place.publish(body_of(str(uuid.uuid4())), **good)
    place.publish(body_of(str(first.uuid), workspace="elsewhere"), **good)
    place.publish(body_of("no-uuid"), **good)
    place.publish([[1, None, {}], {"run": 3}, {}], **good)
    place.publish({"what": "is this"}, **good)
    place.publish(body_of(str(first.uuid)), task="os.system", serializer="json")
    place.publish(b"\x00not json", task=ADVANCE, content_type="application/json", content_encoding="utf-8")
    place.publish(
        pickle.dumps(Trap()), task=ADVANCE, content_type="application/x-python-serialize", content_encoding="binary"
    )
    last = begin(spec)
    wait_for_end(last)
    until(lambda: place.waiting() == 0)
    assert calls(tools) == {"one": 2, "two": 2}
    assert Run.objects.count() == 2
    assert Trap.sprung == []
    assert pool.stop(10) == ()
    assert "names no run" in caplog.text
    assert "cannot be read" in caplog.text
    assert "Unrecoverable" not in caplog.text


def test_runs_whose_messages_were_thrown_away_are_sent_again(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools, clock: Clock
) -> None:
    runs = [begin(spec) for _ in range(count(3, 50))]
    assert sender().flush(10)
    assert place.purge() == len(runs)
    assert recover().resent == 0
    clock.advance(6)
    pools()
    wait_for_end(*runs)
    assert calls(tools) == {"one": len(runs), "two": len(runs)}


@rabbitmq_only
def test_a_run_for_later_is_sent_by_recovery_when_its_time_has_come(place: Place, spec: SpecFile, clock: Clock) -> None:
    run = begin(spec)
    assert sender().flush(10)
    place.purge()
    Run.objects.filter(pk=run.pk).update(not_before=DbNow(2))
    run.refresh_from_db()
    enqueue(run)
    assert sender().flush(10)
    assert place.waiting() == 0, "the broker holds nothing for later"
    assert recover().resent == 0
    clock.advance(2.5)
    assert recover().resent == 1, "not after another 5 s"
    assert recover().resent == 0
    assert sender().flush(10)
    assert place.waiting() == 1
    assert Run.objects.get().status == Status.QUEUED


@rabbitmq_only
def test_the_queue_carries_no_other_task(place: Place) -> None:
    assert isinstance(advance_run.get_backend(), backend.CeleryBackend)
    with pytest.raises(backend.InvalidTask, match="backend of their own"):
        sweep.enqueue()


@rabbitmq_only
def test_the_broker_commands_no_worker(place: Place, pools: Pools, spec: SpecFile) -> None:
    """Whoever reaches the broker can delay runs; remote commands (shutdown, revoke) are not listened to."""
    pools()
    wait_for_end(begin(spec))
    with Celery("anybody", broker=place.direct, set_as_current=False, fixups=[]) as anybody:
        assert anybody.control.ping(timeout=0.5) == []
        anybody.control.shutdown()
    wait_for_end(begin(spec))
