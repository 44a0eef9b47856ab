"""Busy processes: each starts, pauses, lists and decides until its time is over, and says how it went.

    python -m tests.races.busy SPEC USER SECONDS PROCESSES

They are forked from one process that has no connection yet: ten interpreters that each load Django would take longer
to start than the whole measurement. What they say is one JSON list on stdout.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import django

ACTS = ("start", "pause", "list", "decide")


class Busy:
    """One process's work, timed act by act."""

    def __init__(self, path: str, username: str) -> None:
        from django.contrib.auth.models import User

        from approvals.actors import actor_for_user
        from workflows.registry import read_spec

        self.spec = read_spec(path)
        self.actor = actor_for_user(User.objects.get(username=username), "api")
        self.cycles = 0
        self.times: dict[str, list[float]] = {act: [] for act in ACTS}
        self.errors: list[str] = []

    def timed(self, act: str, work: Callable[[], Any]) -> Any:
        """Its answer, None after an error, which is kept."""
        begun = time.perf_counter()
        try:
            return work()
        except Exception as error:  # noqa: BLE001  (whatever reaches a caller is what the test is about)
            self.errors.append(f"{act}: {type(error).__name__}: {error}")
            return None
        finally:
            self.times[act].append(time.perf_counter() - begun)

    def cycle(self) -> None:
        """Start a run, drive it to its pause, find it in the queue, decide it; every second one is rejected."""
        from approvals.narrowing import Narrowing
        from approvals.queue import waiting
        from approvals.services import decide
        from workflows.advance import advance
        from workflows.runs import start_run

        started = self.timed("start", lambda: start_run(self.spec, input="go", actor=self.actor))
        if started is None:
            return
        run = str(started.run.uuid)
        self.timed("pause", lambda: advance("default", run))
        page = self.timed("list", lambda: waiting(by=Narrowing(run=run)))
        self.timed("list", lambda: waiting(limit=20))
        if page is None or len(page.items) != 1:
            self.errors.append(f"list: {page} after the pause of {run}")
            return
        key, approved = page.items[0]["key"], self.cycles % 2 == 0
        self.timed("decide", lambda: decide(key, approved=approved, reason="busy", actor=self.actor))
        self.cycles += 1

    def told(self) -> dict[str, Any]:
        """The whole story."""
        return {"cycles": self.cycles, "times": self.times, "errors": self.errors}


def one(path: str, username: str, seconds: float, barrier: Any, answers: Any) -> None:
    """A forked process, from its start to its answer."""
    busy = Busy(path, username)
    barrier.wait(60)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        busy.cycle()
    answers.put(busy.told())


def main(path: str, username: str, seconds: float, processes: int) -> None:
    """Fork them, let them go together, print what they say."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    fork = multiprocessing.get_context("fork")
    barrier, answers = fork.Barrier(processes), fork.Queue()
    started = [fork.Process(target=one, args=(path, username, seconds, barrier, answers)) for _ in range(processes)]
    for process in started:
        process.start()
    told = [answers.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join(30)
    print(json.dumps(told))  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
