"""A broker that is away fails nothing and loses nothing; a worker that is lost holds nothing up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pytest_django import Settings

from tests.brokers.conftest import Place, calls, rabbitmq_only, redis_only, wait_for_end
from tests.conftest import Clock, Processes
from tests.counts import count
from tests.databases import PROVE
from tests.fakes_tools import FakeTools
from tests.served import until
from tests.workbench import begin
from workflows import beats
from workflows.brokers.sending import sender
from workflows.models import Attempt, Run, Status
from workflows.registry import SpecFile
from workflows.worker import WorkerPool

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # Slow, and what they are about lies at the broker.
    pytest.mark.everyday("postgres"),
    # Celery announces that it will cancel what runs when a connection is lost; ours says that it does not.
    pytest.mark.filterwarnings("ignore::celery.exceptions.CPendingDeprecationWarning"),
]

Pools = Callable[..., WorkerPool]
GOOD = {"json": {"ok": True}}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the operator was told about the broker."""
    return [one.getMessage() for one in caplog.records if one.name == "kampong.broker"]


def test_a_broker_that_is_away_at_the_start(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools, caplog: pytest.LogCaptureFixture
) -> None:
    place.wire.cut()
    pools(2)
    began = time.monotonic()
    runs = [begin(spec) for _ in range(3)]
    assert time.monotonic() - began < 2, "nobody waits for the broker"
    until(lambda: len(warnings(caplog)) >= 2)
    time.sleep(1.5)  # several more attempts
    assert len(warnings(caplog)) == 2, "one from who sends and one from who takes, and no more"
    assert Run.objects.filter(status=Status.QUEUED).count() == 3
    place.wire.mend()
    wait_for_end(*runs)
    assert calls(tools) == {"one": 3, "two": 3}
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_a_broker_that_goes_away_in_the_middle_of_a_step(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools, caplog: pytest.LogCaptureFixture
) -> None:
    tools.script["POST /one"] = [{"hang": 1.0, **GOOD}, *[GOOD] * 3]
    pools(2)
    first = begin(spec)
    until(lambda: calls(tools)["one"])
    place.wire.cut()
    later = [begin(spec), begin(spec)]
    wait_for_end(first)
    assert Run.objects.filter(status=Status.QUEUED).count() == 2
    place.wire.mend()
    wait_for_end(*later)
    until(lambda: place.waiting() == 0)
    assert calls(tools) == {"one": 3, "two": 3}, "what the broker delivered again was begun already"
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR], caplog.text


@redis_only
def test_a_step_longer_than_the_time_after_which_redis_shows_a_message_again(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools, settings: Settings
) -> None:
    settings.BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 1, "unacked_restore_interval": 0.2}
    tools.script["POST /one"] = {"hang": count(3, 10), **GOOD}
    pools(2)
    pools(1)  # another one that would take it
    run = begin(spec)
    wait_for_end(run)
    assert calls(tools) == {"one": 1, "two": 1}
    assert Attempt.objects.filter(run=run).count() == 2


def test_a_worker_that_ends_finishes_its_step_and_gives_the_rest_back(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools
) -> None:
    tools.script["POST /one"] = [{"hang": 0.7, **GOOD}, *[GOOD] * 3]
    pool = pools(1)
    first = begin(spec)
    until(lambda: calls(tools)["one"])
    rest = [begin(spec) for _ in range(3)]
    assert sender().flush(10)
    assert pool.stop(20) == ()
    first.refresh_from_db()
    assert first.status == Status.COMPLETED
    assert Run.objects.filter(status=Status.QUEUED).count() == 3
    assert place.waiting() == 3
    pools(1)
    wait_for_end(*rest, seconds=4)
    assert calls(tools) == {"one": 4, "two": 4}


def test_a_worker_says_which_runs_its_drain_was_too_short_for(
    place: Place, pools: Pools, spec: SpecFile, tools: FakeTools
) -> None:
    tools.script["POST /one"] = {"hang": 1.5, **GOOD}
    pool = pools(1)
    run = begin(spec)
    until(lambda: calls(tools)["one"])
    assert pool.stop(0.1) == (str(run.uuid),)
    wait_for_end(run)


#: Where the worker is killed, and what becomes of the run.
KILLED = {"run.called": Status.INTERRUPTED, "run.event_written": Status.COMPLETED}
SCENES = [("rabbitmq", "run.called"), ("redis", "run.event_written")]
if PROVE:
    SCENES = [(kind, point) for kind in ("rabbitmq", "redis") for point in KILLED]


@pytest.mark.parametrize(("place", "point"), SCENES, indirect=["place"])
def test_a_worker_that_is_killed(
    point: str, place: Place, pools: Pools, manage: Processes, spec: SpecFile, tools: FakeTools, clock: Clock
) -> None:
    """In the middle of a call: interrupted. Between steps: it goes on elsewhere, as do those that were queued."""
    runs = [begin(spec) for _ in range(3)]
    assert sender().flush(10)
    env = {
        "KAMPONG_QUEUE": "celery",
        "KAMPONG_QUEUE_NAME": place.queue,
        "BROKER_URL": place.url,
        "KAMPONG_FAULTS": f"{point}=kill",
    }
    worker = manage.start("worker", "--workers", "1", env=env)
    until(lambda: worker.poll() is not None)
    assert worker.returncode == -9, worker.communicate()
    victim = Run.objects.get(status=Status.RUNNING)
    others = [run for run in runs if run != victim]
    pools(1)
    wait_for_end(*others)
    victim.refresh_from_db()
    assert victim.status == Status.RUNNING, "a lease that still runs is left alone"
    clock.advance(61)
    until(lambda: Run.objects.get(pk=victim.pk).status == KILLED[point])
    assert calls(tools) == {"one": 3, "two": 2 if point == "run.called" else 3}


@rabbitmq_only
def test_the_worker_command_shows_that_it_lives_and_ends_when_told(
    place: Place, manage: Processes, spec: SpecFile
) -> None:
    env = {"KAMPONG_QUEUE": "celery", "KAMPONG_QUEUE_NAME": place.queue, "BROKER_URL": place.url}
    worker = manage.start("worker", "--workers", "2", env=env)
    wait_for_end(begin(spec))
    assert [one.pid for one in beats.alive()] == [worker.pid]
    worker.terminate()
    out, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert out.splitlines() == ["Working. Ctrl-C ends it.", "Stopped."]
    assert err == ""
    assert beats.alive() == []


def test_the_brokers_password_is_in_no_line_of_the_log(
    place: Place, pools: Pools, spec: SpecFile, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused, cut off and refused again, with everything logged that can be."""
    caplog.set_level(logging.DEBUG)
    parts = urlsplit(place.url)
    settings.BROKER_URL = parts._replace(netloc=f"guest:planted-canary@127.0.0.1:{parts.port}").geturl()
    pools(1)
    begin(spec)
    until(lambda: len(warnings(caplog)) >= 2)
    place.wire.cut()
    time.sleep(1.2)
    assert "planted" not in caplog.text
    assert len(warnings(caplog)) == 2


def test_messages_kept_while_the_broker_is_away_are_bounded_and_each_run_stands_there_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("workflows.brokers.sending.MOST_KEPT", 5)
    place.wire.cut()
    for _ in range(3):
        for number in range(10):
            sender().send("default", f"00000000-0000-0000-0000-{number:012}")
    assert not sender().flush(10)
    place.wire.mend()
    until(lambda: sender().flush(1))
    assert place.waiting() == 5
