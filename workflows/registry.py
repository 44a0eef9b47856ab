"""Which specs are served, and the text that a run is pinned to.

The file is the only source for new runs. A broken or removed file refuses them and stops nothing else: running and
waiting runs go on with the text they started with (design 5.4).
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from statestore.conf import value as setting
from workflows.errors import AgentNotFound, SpecBroken
from workflows.models import SpecVersion
from workflows.spec.load import load
from workflows.spec.model import Spec
from workflows.specfiles import BrokenFile, SpecFile, SpecFiles, SpecUnreadable, broken, paths_in

__all__ = [
    "BrokenFile",
    "Registry",
    "SpecFile",
    "SpecUnreadable",
    "paths_in",
    "pinned",
    "present_hash",
    "read_spec",
    "registry",
]

SERVED_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SERVED_ID_RULE = "it is 1 to 100 letters, digits, '.', '_' or '-', and starts with a letter or digit"


def read_spec(path: str | Path) -> SpecFile:
    """Read one file. Raises SpecUnreadable with located errors."""
    file = SpecFiles(pipes=True).read(Path(path).absolute())
    if isinstance(file, BrokenFile):
        raise SpecUnreadable(file)
    return file


class Registry:
    """The served specs: what the setting names, then what `serve` was given. Looks at the disk at each call."""

    def __init__(self, configured: Callable[[], Iterable[str]] = tuple) -> None:
        self._configured = configured
        self._given: list[Path] = []
        self._disk = SpecFiles()
        self._lock = threading.RLock()
        self._owners: dict[str, Path] = {}

    def serve(self, paths: Iterable[str | Path]) -> None:
        """Serve these files and folders as well."""
        with self._lock:
            for path in paths:
                absolute = Path(path).absolute()
                if absolute not in self._given:
                    self._given.append(absolute)

    def find(self, agent_id: str) -> SpecFile:
        """The spec that starts runs of this agent. Raises SpecBroken or AgentNotFound."""
        with self._lock:
            served, refused = self._look()
            if agent_id in served:
                return served[agent_id]
            for file in refused:
                if file.agent_id == agent_id:
                    raise SpecBroken(
                        f"the spec of agent {agent_id!r} is broken, so no new run starts: {file.path}: {file.message}",
                        errors=[{"path": error.where, "message": error.message} for error in file.errors],
                    )
            gone = self._owners.get(agent_id)
        if gone is not None:
            raise SpecBroken(
                f"the spec of agent {agent_id!r} is gone, so no new run starts: {gone}. Put the file back.", errors=[]
            )
        known = ", ".join(sorted(served)) or "none"
        raise AgentNotFound(f"no spec with agent id {agent_id!r} is served; served: {known}")

    def files(self) -> list[SpecFile]:
        """All specs that start runs."""
        with self._lock:
            return list(self._look()[0].values())

    def broken(self) -> list[BrokenFile]:
        """All files that should start runs and do not."""
        with self._lock:
            return self._look()[1]

    def present(self, agent_id: str, source: str) -> SpecFile | BrokenFile | None:
        """The run's spec now: its own file if that exists, else the served file of the agent; None when it is gone."""
        with self._lock:
            path = Path(source) if source else None
            if path is not None and os.path.exists(path):
                return self._disk.read(path)
            return self._look()[0].get(agent_id)

    def present_hash(self, agent_id: str, source: str) -> str | None:
        """What the run's spec says now; None when it is missing or invalid."""
        file = self.present(agent_id, source)
        return file.hash if isinstance(file, SpecFile) else None

    def _look(self) -> tuple[dict[str, SpecFile], list[BrokenFile]]:
        """Served by agent id, and refused. A broken file keeps its claim on the id that it had."""
        served: dict[str, SpecFile] = {}
        refused: list[BrokenFile] = []
        claimed: dict[str, Path] = {}
        for path in self._paths():
            file = self._disk.read(path)
            taken = claimed.get(file.agent_id) if file.agent_id is not None else None
            if taken is not None:
                refused.append(broken(path, f"agent id {file.agent_id!r} is already served from {taken}"))
                continue
            if file.agent_id is not None:
                claimed[file.agent_id] = path
            if isinstance(file, BrokenFile):
                refused.append(file)
            elif not SERVED_ID.fullmatch(file.agent_id):
                refused.append(broken(path, f"agent id {file.agent_id!r} cannot be served: {SERVED_ID_RULE}"))
            else:
                served[file.agent_id] = file
        self._owners.update({agent_id: file.path for agent_id, file in served.items()})
        return served, refused

    def _paths(self) -> list[Path]:
        """Every file once, however often and under however many names it is reached."""
        found: dict[Path, Path] = {}
        sources = [Path(name).absolute() for name in self._configured()]
        for source in [*sources, *self._given]:
            for path, real in self._disk.under(source):
                found.setdefault(real, path)
        return list(found.values())


@functools.cache
def registry() -> Registry:
    """The registry of this process: KAMPONG_SPECS, and what `serve` was given."""
    return Registry(lambda: setting("KAMPONG_SPECS"))


def present_hash(agent_id: str, source: str) -> str | None:
    """`Registry.present_hash` of this process's registry."""
    return registry().present_hash(agent_id, source)


@functools.lru_cache(maxsize=256)
def pinned(workspace: str, spec_hash: str) -> Spec:
    """The spec that runs with this hash execute, whatever the file says by now.

    Raises SpecVersion.DoesNotExist for a hash no run started with, SpecBroken when this release reads it no longer, or
    when the stored text is not the one that the hash names.
    """
    version = SpecVersion.objects.get(workspace=workspace, hash=spec_hash)
    loaded = load(version.text)
    if loaded.spec is None:
        errors = "; ".join(str(error) for error in loaded.errors)
        raise SpecBroken(f"the stored spec {spec_hash[:12]} of agent {version.agent_id!r} no longer loads: {errors}")
    if loaded.hash != spec_hash:
        raise SpecBroken(
            f"the stored spec {spec_hash[:12]} of agent {version.agent_id!r} was changed in the database: "
            f"its text has the hash {loaded.hash[:12]}. Nothing is run; start a new run."
        )
    return loaded.spec
