"""One thread a process renews the leases of all runs that the process holds, in one statement (design 3.1)."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import F
from django.db.models.functions import Greatest

from statestore.clock import DbNow
from statestore.conf import value as setting
from workflows.journal import RunJournal
from workflows.models import Run, Status

logger = logging.getLogger("kampong.heartbeat")

_lock = threading.Lock()
#: Held while leases are renewed: whoever has it knows that no renewal is under way.
renewing = threading.Lock()
_held: dict[int, RunJournal] = {}
_thread: threading.Thread | None = None
_owner: tuple[int, str] | None = None


def owner() -> str:
    """A name for this process that no other process, and no child of this one, has."""
    global _owner
    with _lock:
        if _owner is None or _owner[0] != os.getpid():
            _owner = (os.getpid(), f"{socket.gethostname()[:20]}:{os.getpid()}:{uuid.uuid4().hex[:12]}")
        return _owner[1]


@contextmanager
def holding(journal: RunJournal) -> Iterator[None]:
    """Renew this run's lease while the block runs."""
    global _thread
    with _lock:
        _held[journal.run.pk] = journal
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_beat, name="kampong-heartbeat", daemon=True)
            _thread.start()
    try:
        yield
    finally:
        with _lock:
            if _held.get(journal.run.pk) is journal:
                del _held[journal.run.pk]


def renew_now() -> int:
    """Renew all leases of this process; how many runs are still ours."""
    with renewing:
        return _renew()


def _renew() -> int:
    with _lock:
        journals = list(_held.values())
    if not journals:
        return 0
    asked_at = time.monotonic()
    mine = Run.objects.filter(lease_owner=owner(), status=Status.RUNNING, pk__in=[one.run.pk for one in journals])
    renewed = mine.update(lease_until=Greatest(F("lease_until"), DbNow(setting("KAMPONG_LEASE_SECONDS"))))
    if renewed == len(journals):
        kept = journals
    else:
        tokens = dict(mine.values_list("pk", "lease_token"))
        kept = [one for one in journals if tokens.get(one.run.pk) == one.lease_token]
    for one in kept:
        one.renewed_at = max(one.renewed_at, asked_at)
    return len(kept)


def _beat() -> None:
    """Until no run is held: a process that holds nothing has no thread."""
    global _thread
    try:
        while True:
            time.sleep(setting("KAMPONG_HEARTBEAT_SECONDS"))
            with _lock:
                if not _held:
                    _thread = None
                    return
            try:
                renew_now()
            except (DatabaseError, InterfaceError):
                # The lease runs out by itself if this goes on; the driver asks before each call.
                logger.warning("could not renew leases; trying again", exc_info=True)
                connection.close()
    finally:
        connection.close()


def _after_fork() -> None:
    """A child has no thread that would give back what the parent's had at that moment."""
    global renewing
    renewing = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
