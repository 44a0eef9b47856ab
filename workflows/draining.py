"""Whether this process is about to end: streams say goodbye, waiting requests answer, workers take nothing new."""

from __future__ import annotations

import threading

#: Set once, by the first SIGTERM or Ctrl-C of `serve` and `worker`; never cleared in a serving process.
draining = threading.Event()
