"""One spec file as it is on disk: read, checked, and read again only when it changed."""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from workflows.errors import Refusal
from workflows.spec.errors import Note, SpecError
from workflows.spec.load import load
from workflows.spec.model import Spec
from workflows.spec.reader import read
from workflows.spec.source import Unreadable, decoded

SPEC_LIMIT = 4 * 1024 * 1024

# A file system's clock ticks a few milliseconds at a time: a file that changed this recently may change once more
# without its signature showing it, so it is read again until it has rested.
_RESTED_NS = 100_000_000
_REMEMBERED = 4096
_SUFFIXES = frozenset({".yaml", ".yml"})

Signature: TypeAlias = tuple[int, int, int, int, int]


class SpecUnreadable(Refusal):
    """The file cannot be read or is no valid spec; `errors` say where and why.

    `unread`: nothing is known of what the file says, as it is missing, a folder, locked away, or on a broken disk.
    """

    code = "spec_broken"

    def __init__(self, file: BrokenFile) -> None:
        super().__init__(f"{file.path}: {file.message}")
        self.path = file.path
        self.errors = file.errors
        self.unread = file.unread


@dataclass(frozen=True, kw_only=True)
class SpecFile:
    """A valid spec and where it was read. `hash` names what it says, not how it is laid out (design 6)."""

    path: Path
    agent_id: str
    hash: str
    text: str
    spec: Spec
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BrokenFile:
    """A file that starts no runs. `agent_id` is the agent that it claims, when that is known."""

    path: Path
    agent_id: str | None
    errors: tuple[SpecError, ...]
    unread: bool = False

    @property
    def message(self) -> str:
        """All errors in one line."""
        return "; ".join(str(error) for error in self.errors)


@dataclass(frozen=True, kw_only=True)
class _Reading:
    signature: Signature | None
    file: SpecFile | BrokenFile


@dataclass(frozen=True, kw_only=True)
class _Listing:
    signature: Signature | None
    paths: tuple[tuple[Path, Path], ...]


class SpecFiles:
    """Remembers what each path held, by its stat signature. The caller keeps threads apart.

    A pipe or a device is read only where `pipes` says so: whoever reads one waits for its writer, and others for him.
    """

    def __init__(self, *, pipes: bool = False) -> None:
        self._pipes = pipes
        self._readings: OrderedDict[Path, _Reading] = OrderedDict()
        self._listings: dict[Path, _Listing] = {}

    def under(self, source: Path) -> tuple[tuple[Path, Path], ...]:
        """The spec files of a folder, sorted, each with its real path; a file, or nothing at all, names itself."""
        before = self._listings.get(source)
        if before is not None and before.signature is not None and before.signature == _signature_at(source):
            return before.paths
        found = _signature_at(source)
        paths = tuple((path, Path(os.path.realpath(path))) for path in paths_in(source))
        self._listings[source] = _Listing(signature=found if found and _rested(found) else None, paths=paths)
        return paths

    def read(self, path: Path) -> SpecFile | BrokenFile:
        """The file as it is now. A file that broke keeps the agent id that it had."""
        before = self._readings.get(path)
        if before is not None and before.signature is not None and before.signature == _signature_at(path):
            self._readings.move_to_end(path)
            return before.file
        last_id = before.file.agent_id if before is not None else None
        if not _can_be_named(path):
            reading = _unread(path, "its name is not UTF-8, and no run could name it", last_id)
        elif not self._pipes and (what := _waits_for_somebody(path)):
            reading = _unread(path, what, last_id)
        else:
            reading = _read(path, last_id)
        self._readings[path] = reading
        self._readings.move_to_end(path)
        if len(self._readings) > _REMEMBERED:
            self._readings.popitem(last=False)
        return reading.file


def paths_in(source: Path) -> list[Path]:
    """The spec files of a folder, sorted; a file names itself, and so does what cannot be looked at.

    Asked by the functions of `os.path`: a `Path` raises for a link that leads in a circle, or where nobody may look.
    """
    if not os.path.isdir(source):
        return [source]
    try:
        return sorted(path for path in source.iterdir() if path.suffix.lower() in _SUFFIXES and os.path.isfile(path))
    except OSError:
        return [source]


def _can_be_named(path: Path) -> bool:
    """Whether its name is text: a run keeps it, and bytes that are none can be neither stored nor shown."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _waits_for_somebody(path: Path) -> str:
    """What this is where reading it may never end; empty for a file, and for what reading tells more about."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    if stat.S_ISFIFO(mode):
        return "it is a pipe"
    return "it is a device" if stat.S_ISCHR(mode) else ""


def broken(path: Path, message: str, agent_id: str | None = None) -> BrokenFile:
    """A file that is refused as a whole."""
    return BrokenFile(path=path, agent_id=agent_id, errors=(SpecError(path=(), message=message),))


def _signature_at(path: Path) -> Signature | None:
    try:
        return _signature(os.stat(path))
    except OSError:
        return None


def _signature(found: os.stat_result) -> Signature:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(path: Path, last_id: str | None) -> _Reading:
    try:
        with open(path, "rb") as file:
            began = _signature(os.fstat(file.fileno()))
            content = file.read(SPEC_LIMIT + 1)
            ended = _signature(os.fstat(file.fileno()))
    except OSError as error:
        return _unread(path, error.strerror or str(error), last_id)
    steady = began == ended and _rested(ended)
    return _Reading(signature=ended if steady else None, file=_check(path, content, last_id))


def _unread(path: Path, reason: str, last_id: str | None) -> _Reading:
    file = broken(path, f"cannot be read: {reason}", last_id)
    return _Reading(signature=None, file=replace(file, unread=True))


def _rested(signature: Signature) -> bool:
    return time.time_ns() - max(signature[3], signature[4]) > _RESTED_NS


def _check(path: Path, content: bytes, last_id: str | None) -> SpecFile | BrokenFile:
    if len(content) > SPEC_LIMIT:
        return broken(path, f"is larger than {SPEC_LIMIT // 1024 // 1024} MiB", last_id)
    loaded = load(content)
    if loaded.spec is None:
        return BrokenFile(path=path, agent_id=_named_id(content) or last_id, errors=loaded.errors)
    return SpecFile(
        path=path,
        agent_id=loaded.spec.agent.id,
        hash=loaded.hash,
        text=decoded(content),
        spec=loaded.spec,
        notes=loaded.notes,
    )


def _named_id(content: bytes) -> str | None:
    """The agent that an invalid spec means to be; None when it does not even say that."""
    try:
        document = read(content)
    except Unreadable:
        return None
    tree = document.tree if document is not None else None
    agent = tree.get("agent") if isinstance(tree, dict) else None
    agent_id = agent.get("id") if isinstance(agent, dict) else None
    return agent_id if isinstance(agent_id, str) else None
