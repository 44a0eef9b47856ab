"""Processes that all deliver the same events at the same moments, and say what each was answered.

    python -m tests.races.delivering PROCESSES THREADS EVENTS

They are forked from one process that has Django loaded and no connection. On stdout: a JSON list with one entry for
each event, a list of `[status, id]` of all threads of all processes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from typing import Any

import django

URL = "/webhook/clerk"


class Sender:
    """One process; each thread of it sends every event once, at the barrier's signal."""

    def __init__(self, threads: int, events: int, barrier: Any) -> None:
        self.threads, self.events, self.barrier = threads, events, barrier
        self.told: list[list[Any]] = [[] for _ in range(events)]

    def work(self) -> list[list[Any]]:
        threads = [threading.Thread(target=self._send_all) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.told

    def _send_all(self) -> None:
        from django.db import connections

        try:
            for number in range(self.events):
                self.barrier.wait(120)
                self.told[number].append(self._send(number))
        finally:
            connections.close_all()

    def _send(self, number: int) -> list[Any]:
        from django.test import Client

        from tests.signing import standard

        body = b'{"event": %d}' % number
        answer: Any = Client(raise_request_exception=False).post(
            URL, body, content_type="application/json", headers=standard(body, id=f"msg_{number}")
        )
        return [answer.status_code, answer.json().get("id") or answer.json()]


def born(threads: int, events: int, barrier: Any, answers: Any) -> None:
    """The child's whole life."""
    answers.put(Sender(threads, events, barrier).work())


def main() -> None:
    """Fork, collect, print."""
    processes, threads, events = map(int, sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    from django.test.utils import setup_test_environment

    setup_test_environment()
    import kampong.urls  # noqa: F401  (before the fork, so that no child has to)

    forking = multiprocessing.get_context("fork")
    barrier, answers = forking.Barrier(processes * threads), forking.Queue()
    children = [forking.Process(target=born, args=(threads, events, barrier, answers)) for _ in range(processes)]
    for child in children:
        child.start()
    told = [answers.get(timeout=300) for _ in children]
    for child in children:
        child.join(60)
    print(json.dumps([[one for each in told for one in each[number]] for number in range(events)]))  # noqa: T201


if __name__ == "__main__":
    main()
