"""Schedulers that all look at the same moments, day after day: `python -m tests.races.firing PROCESSES THREADS DAYS`.

They are forked from one process that has Django loaded and no connection. Before each look the clock of the test is
moved on by a day; on every odd day what was started before has ended by then, and on every even one it is still going.
On stdout: how many runs each day's looks said that they started.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from pathlib import Path
from typing import Any

import django

DAY = 86_400


def next_day(number: int) -> None:
    """What happens between two looks."""
    from django.db import connections

    from workflows.actors import Actor
    from workflows.models import Run, Status
    from workflows.runs import cancel_run

    if number % 2:
        for run in Run.objects.filter(status=Status.QUEUED):
            cancel_run(run, actor=Actor(label="test", surface="system"))
    connections.close_all()
    path = Path(os.environ["KAMPONG_CLOCK_FILE"])
    beside = path.with_suffix(".next")
    beside.write_text(repr(float(path.read_text()) + DAY), encoding="ascii")
    beside.replace(path)


class Looker:
    """One process; each thread of it looks once a day, when all are ready."""

    def __init__(self, threads: int, days: int, ready: Any, go: Any) -> None:
        self.threads, self.days, self.ready, self.go = threads, days, ready, go
        self.started: list[list[int]] = [[] for _ in range(days)]

    def work(self) -> list[int]:
        threads = [threading.Thread(target=self._look_daily) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [sum(day) for day in self.started]

    def _look_daily(self) -> None:
        from django.db import connection, connections

        from workflows.triggers.schedules import fire_due

        try:
            connection.ensure_connection()
            for number in range(self.days):
                self.ready.wait(120)
                self.go.wait(120)
                self.started[number].append(fire_due())
        finally:
            connections.close_all()


def born(threads: int, days: int, ready: Any, go: Any, answers: Any) -> None:
    """The child's whole life."""
    answers.put(Looker(threads, days, ready, go).work())


def main() -> None:
    """Fork, tell the days, collect, print."""
    processes, threads, days = map(int, sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    import workflows.triggers.schedules  # noqa: F401  (before the fork, so that no child has to)

    forking = multiprocessing.get_context("fork")
    ready, go = forking.Barrier(processes * threads + 1), forking.Barrier(processes * threads + 1)
    answers = forking.Queue()
    children = [forking.Process(target=born, args=(threads, days, ready, go, answers)) for _ in range(processes)]
    for child in children:
        child.start()
    for number in range(days):
        ready.wait(120)
        next_day(number)
        go.wait(120)
    told = [answers.get(timeout=300) for _ in children]
    for child in children:
        child.join(60)
    print(json.dumps([sum(day) for day in zip(*told, strict=True)]))  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main()
