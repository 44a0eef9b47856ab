"""Pollers that look at the same instant: at most one polls an agent at a time, and every item gets one run."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from tests.conftest import ROOT, Clock
from tests.counts import count
from tests.fakes_tools import Answer
from tests.triggers.orders import Orders, an_agent, cursor, one_run_each, row, served
from workflows.triggers.polls import poll_next

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = 8
ROUNDS = count(3, 60)
#: Ten minutes each; a week of them when proving.
TICKS = count(18, 7 * 24 * 6)
SEED = 20261130


class Growing(Orders):
    """Three orders come just before each question, and it takes its time over it: the others look meanwhile."""

    def answer(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
        number = len(self.orders)
        self.come(f"o{number}", f"o{number + 1}", f"o{number + 2}")
        return {"hang": 0.05, **super().answer(method, target, headers, body)}


def test_eight_processes_that_look_at_once(
    tmp_path: Path, process_env: dict[str, str], clock: Clock, report: Callable[[str], None]
) -> None:
    with Growing() as orders:
        an_agent(tmp_path, orders.url)
        command = [sys.executable, "-m", "tests.races.pollers", str(ROUNDS), str(PROCESSES)]
        env = process_env | {"KAMPONG_SPECS": str(tmp_path)}
        told = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=180 + 10 * ROUNDS)
    assert (told.returncode, told.stderr) == (0, "")
    assert sum(json.loads(told.stdout)) == ROUNDS
    assert orders.asked == ["", *(str(3 * number) for number in range(1, ROUNDS))]
    one_run_each(*(order["id"] for order in orders.orders))
    assert (cursor(), row().started) == (3 * ROUNDS, 3 * ROUNDS)
    report(f"{ROUNDS} rounds of {PROCESSES} processes: one polled each time, {3 * ROUNDS} items, one run each")


class Pollers:
    """Threads that poll whatever is due each time they are told to, all at once."""

    def __init__(self, number: int) -> None:
        self._barrier = threading.Barrier(number + 1)
        self._over = False
        self.polled = 0
        self._threads = [threading.Thread(target=self._go) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def look(self) -> None:
        """All of them, until nothing is due."""
        self._barrier.wait(60)
        self._barrier.wait(60)

    def end(self) -> None:
        self._over = True
        self._barrier.wait(60)
        for thread in self._threads:
            thread.join(60)

    def _go(self) -> None:
        try:
            while True:
                self._barrier.wait(120)
                if self._over:
                    return
                while poll_next():
                    self.polled += 1
                self._barrier.wait(120)
        except BaseException:
            self._barrier.abort()
            raise
        finally:
            connections.close_all()


def test_two_pollers_for_a_week(tmp_path: Path, clock: Clock, report: Callable[[str], None]) -> None:
    """Orders come and stay for a while, the service fails now and then, and the clock jumps, back as well."""
    chance = random.Random(SEED)
    trigger = 'every: 5m, tool: list_orders, items: orders, key: id, cursor: "$max(orders.at)", seen_ttl: 2d'
    with Orders() as orders, served(tmp_path):
        an_agent(tmp_path, orders.url, trigger)
        pollers = Pollers(2)
        try:
            for _ in range(TICKS):
                number = len(orders.orders)
                orders.come(*(f"o{number + n}" for n in range(chance.randrange(4))))
                if chance.random() < 0.1:
                    orders.first.append({"status": 503, "json": {}})
                clock.advance(chance.choice([600, 600, 600, 400, 1200, -120, 3600]))
                pollers.look()
            orders.first.clear()
            orders.come("last")
            clock.advance(2 * 3600)
            pollers.look()
        finally:
            pollers.end()
    one_run_each(*(order["id"] for order in orders.orders))
    assert (cursor(), row().started, row().error) == (len(orders.orders), len(orders.orders), "")
    assert pollers.polled == len(orders.asked)
    positions = [int(position or 0) for position in orders.asked]
    assert positions == sorted(positions), "the position never goes back"
    report(f"{TICKS} ticks, seed {SEED}: {pollers.polled} polls, {len(orders.orders)} items, one run each")
