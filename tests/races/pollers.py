"""Processes that each poll whatever is due at the same instant, round by round.

    python -m tests.races.pollers ROUNDS PROCESSES

Between two rounds the shared clock moves by what makes the next poll due. Forked as in `busy`; on stdout how often each
polled, as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

import django


def one(number: int, rounds: int, barrier: Any, answers: Any) -> None:
    """A forked process, from its start to its answer."""
    from django.db import connections

    from workflows.triggers.polls import poll_next

    clock, polled = Path(os.environ["KAMPONG_CLOCK_FILE"]), 0
    for turn in range(1, rounds + 1):
        if number == 0:
            clock.write_text(str(turn * 61.0), encoding="ascii")
        barrier.wait(60)
        while poll_next():
            polled += 1
        barrier.wait(60)
    connections.close_all()
    answers.put(polled)


def main(rounds: int, processes: int) -> None:
    """Fork them, let them go together, print how often each polled."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    import workflows.triggers.polls  # noqa: F401  (before the first fork, so that no child has to)

    fork = multiprocessing.get_context("fork")
    barrier, answers = fork.Barrier(processes), fork.Queue()
    started = [fork.Process(target=one, args=(number, rounds, barrier, answers)) for number in range(processes)]
    for process in started:
        process.start()
    told = [answers.get(timeout=60 + 10 * rounds) for _ in started]
    for process in started:
        process.join(30)
    print(json.dumps(told))  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
