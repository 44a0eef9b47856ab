"""The loops that keep house in a process: one for what is done here, one for what waits for services outside."""

from __future__ import annotations

import logging

from django.db import DatabaseError, InterfaceError

from workflows import housekeeping, messages
from workflows.housekeeping import Chore
from workflows.rota import Rota
from workflows.supervisor import Loop, drop_dead_connections
from workflows.wakeup import Bell

logger = logging.getLogger("kampong.worker")

housekeeping.register("old messages", 3600.0, messages.prune)


def loops(of: str, bell: Bell) -> list[Loop]:
    """For a process whose threads are named after `of`; each chore is done when it is due, and another after it."""
    own, calling = Rota(lambda: _chores(calling_out=False)), Rota(lambda: _chores(calling_out=True))
    return [
        Loop(f"{of}-chores", lambda: _do_due(own), bell),
        Loop(f"{of}-calls-out", lambda: _do_due(calling), bell),
    ]


def _chores(*, calling_out: bool) -> tuple[Chore, ...]:
    return tuple(chore for chore in housekeeping.chores() if chore.calls_out is calling_out)


def _do_due(rota: Rota) -> float:
    for chore in rota.due():
        _do(rota, chore)
    return rota.seconds_to_next(most=1.0)


def _do(rota: Rota, chore: Chore) -> None:
    try:
        done = rota.do(chore)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("%s: %s: %s; trying again", chore.name, type(error).__name__, str(error).strip())
        drop_dead_connections()
    except Exception:
        # One chore that fails must not keep the others from being done; it is due again after its interval.
        logger.exception("%s failed; trying again in %s s", chore.name, chore.every_seconds)
        drop_dead_connections()
    else:
        if told := rota.to_tell(chore, done):
            logger.info("%s: %d", chore.name, told)
