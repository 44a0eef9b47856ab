"""A process that writes back to back when it is told to; started by the test of fairness with a file and seconds.

It has this one app and no project around it, which is also how another Django project would use the store.
"""

from __future__ import annotations

import json
import sys
import time

import django
from django.conf import settings


def main(database: str, seconds: float, key: str) -> None:
    settings.configure(
        DATABASES={"default": {"ENGINE": "statestore.sqlite", "NAME": database}},
        INSTALLED_APPS=["statestore"],
        USE_TZ=True,
    )
    django.setup()
    from statestore.store import StateStore  # only now: its models need the app

    store = StateStore("default", "writer")
    store.exists(key)
    print("ready", flush=True)  # noqa: T201  (the parent reads it)
    sys.stdin.readline()
    rounds, longest, end = 0, 0.0, time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        store.put(key, rounds, ttl=60)
        assert store.claim(key) == rounds
        rounds += 1
        longest = max(longest, time.perf_counter() - begun)
    print(json.dumps([rounds, longest]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
