"""Processes that each drive a run to a step on the store at the same instant, round by round.

    python -m tests.races.askers SPEC ROUNDS PROCESSES

The rounds' keys are `k0`, `k1` and so on. Forked as in `busy`; on stdout the runs' ids, one list a round, as JSON.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import sys
from typing import Any

import django


def one(path: str, rounds: int, barrier: Any, answers: Any) -> None:
    """A forked process, from its start to its answer."""
    from django.db import connections

    from workflows.actors import Actor
    from workflows.advance import advance
    from workflows.registry import read_spec
    from workflows.runs import start_run

    spec, actor = read_spec(path), Actor(label="asker", surface="api")
    runs = []
    for number in range(rounds):
        runs.append(str(start_run(spec, input=f"k{number}", actor=actor).run.uuid))
        barrier.wait(60)
        advance("default", runs[-1])
    connections.close_all()
    answers.put(runs)


def main(path: str, rounds: int, processes: int) -> None:
    """Fork them, let them go together, print which runs they drove."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    gc.freeze()  # no process copies what is loaded by looking at it
    fork = multiprocessing.get_context("fork")
    barrier, answers = fork.Barrier(processes), fork.Queue()
    started = [fork.Process(target=one, args=(path, rounds, barrier, answers)) for _ in range(processes)]
    for process in started:
        process.start()
    told = [answers.get(timeout=60 + 10 * rounds) for _ in started]
    for process in started:
        process.join(30)
    print(json.dumps(list(zip(*told, strict=True))))  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
