"""Watchers in one process, the run in another: every event once and in order, with Redis, without it, and again."""

from __future__ import annotations

import queue
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from kampong import environment
from tests.brokers.conftest import need
from tests.brokers.proxy import Wire
from tests.conftest import People, Processes
from tests.counts import count
from tests.served import until
from tests.workbench import begin
from workflows import crossing, tailing
from workflows.api.authentication import Standing
from workflows.live import Item, News, Tailer, Watch
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("postgres")]

#: A look so seldom that what is seen sooner was woken.
SELDOM = 4.0


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Between our processes and Redis."""
    url = need("redis")
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")
    wire = Wire(host, int(port or 6379))
    yield wire
    wire.cut()


@pytest.fixture
def redis_url(wire: Wire) -> str:
    return f"redis://127.0.0.1:{wire.port}/9"


@pytest.fixture
def seldom(settings: Settings, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tailer]:
    """A tailer in this process that looks seldom, unless it is woken."""
    settings.CHANNEL_LAYERS = {"default": environment.channel_layer({"CHANNEL_REDIS_URL": redis_url})}
    mine = crossing.Crossing()
    monkeypatch.setattr(tailing, "crossing", mine)
    monkeypatch.setattr(Tailer, "turn_seconds", SELDOM)
    tailer = Tailer()
    yield tailer
    for watch in tailer._all():
        tailer.leave(watch)
    mine.close()
    until(lambda: not tailer.running)


class Seen:
    """What a watcher was told, and how long after it was written."""

    def __init__(self, tailer: Tailer, run: Run, standing: Standing) -> None:
        self.items: queue.Queue[tuple[Item, float]] = queue.Queue()
        watch = Watch(run_id=run.pk, position=0, standing=standing, deliver=self._take)
        tailer.watch(watch)

    def _take(self, item: Item) -> bool:
        self.items.put((item, time.time()))
        return True

    def to_the_end(self, seconds: float = 30) -> tuple[list[int], list[float]]:
        """The numbers of its events in order, and their delays."""
        numbers, delays = [], []
        while True:
            item, at = self.items.get(timeout=seconds)
            assert isinstance(item, News), item
            numbers.append(item.frame.number)
            delays.append(at - item.frame.at.timestamp())
            if item.frame.state["status"] == "completed":
                return numbers, delays


def test_a_watcher_is_woken_through_redis_sees_all_without_it_and_is_woken_again(
    wire: Wire,
    redis_url: str,
    seldom: Tailer,
    manage: Processes,
    people: People,
    spec: SpecFile,
    tmp_path: Path,
    report: Callable[[str], None],
) -> None:
    standing = Standing(user_id=people.operator.pk, token_digest=None, permission="workflows.view_run")
    with (tmp_path / "worker.err").open("w") as err:
        manage.start("worker", "--workers", "1", env={"CHANNEL_REDIS_URL": redis_url}, stderr=err)

    def watched() -> list[float]:
        """The delays of one run, driven by the other process."""
        run = begin(spec)
        numbers, delays = Seen(seldom, run, standing).to_the_end()
        assert numbers == list(range(1, Run.objects.get(pk=run.pk).last_event + 1)), "each once, in order"
        return delays

    def woken() -> bool:
        return max(watched()) < SELDOM / 2

    until(woken)
    delays = [delay for _ in range(count(3, 50)) for delay in watched()]
    assert max(delays) < SELDOM / 2
    median = statistics.median(delays) * 1000
    report(f"woken: {len(delays)} events seen in another process after {median:.0f} ms (median)")
    wire.cut()
    assert max(max(watched()) for _ in range(2)) > 0.5, "at the next look"
    wire.mend()
    until(woken)
    said = (tmp_path / "worker.err").read_text()
    assert said.count("no wake-ups across processes") == 1
    assert "Traceback" not in said


def test_without_a_layer_that_crosses_processes_nothing_is_started() -> None:
    alone = crossing.Crossing()
    alone.ring()
    alone.listen(lambda: None)
    assert alone._running() is None
