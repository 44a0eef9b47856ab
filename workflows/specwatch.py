"""What became of the spec files, said in the log once: broken, mended, changed, new, gone.

Runs never wait for this: the registry looks at the disk whenever it is asked. This tells those who look at no page.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from workflows.registry import BrokenFile, Registry, SpecFile, registry
from workflows.supervisor import Loop
from workflows.wakeup import Bell

logger = logging.getLogger("kampong.specs")

EVERY_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A file as it was at the last look. `hash` is empty and `why` is not where it is broken."""

    agent_id: str | None
    hash: str = ""
    why: str = ""

    @property
    def agent(self) -> str:
        return f"agent {self.agent_id}" if self.agent_id is not None else "an agent that it does not name"


class SpecWatch:
    """Compares the files of one registry with what they were at the last look. Safe in several threads."""

    def __init__(self, watched: Callable[[], Registry] = registry) -> None:
        self._watched = watched
        self._lock = threading.Lock()
        self._before: dict[Path, _Seen] | None = None

    def look(self) -> int:
        """Log what changed since the last look; at the first one, what is broken. Always 0: nothing is left to do."""
        with self._lock:
            files = self._watched()
            present = _seen(files.files(), files.broken())
            self._tell({} if self._before is None else self._before, present, first=self._before is None)
            self._before = present
        return 0

    def _tell(self, before: dict[Path, _Seen], present: dict[Path, _Seen], *, first: bool) -> None:
        served = {seen.agent_id: path for path, seen in present.items() if seen.hash}
        for path, seen in present.items():
            old = before.get(path)
            if seen == old:
                continue
            if not seen.hash:
                logger.warning("%s is broken: %s: %s starts no new run, running ones go on", path, seen.why, seen.agent)
            elif first:
                continue
            elif old is None:
                logger.info("%s is new: %s is served (%s)", path, seen.agent, seen.hash[:12])
            elif not old.hash:
                # As loud as what it takes back.
                logger.warning("%s is mended: %s is served (%s)", path, seen.agent, seen.hash[:12])
            elif seen.agent_id != old.agent_id:
                logger.info("%s changed: %s instead of %s (%s)", path, seen.agent, old.agent, seen.hash[:12])
            else:
                logger.info("%s changed: %s %s -> %s", path, seen.agent, old.hash[:12], seen.hash[:12])
        for path, old in before.items():
            if path in present:
                continue
            if old.agent_id in served:
                logger.info("%s is gone: %s is served from %s", path, old.agent, served[old.agent_id])
            else:
                logger.warning("%s is gone: %s starts no new run, running ones go on", path, old.agent)


def _seen(served: Iterable[SpecFile], refused: Iterable[BrokenFile]) -> dict[Path, _Seen]:
    found = {file.path: _Seen(agent_id=file.agent_id, hash=file.hash) for file in served}
    found |= {file.path: _Seen(agent_id=file.agent_id, why=file.message) for file in refused}
    return found


#: The one of this process.
watch = SpecWatch()


def loop() -> Loop:
    """A thread that looks again and again, for a process in which nobody keeps house."""

    def turn() -> float:
        watch.look()
        return EVERY_SECONDS

    return Loop("spec-files", turn, Bell())
