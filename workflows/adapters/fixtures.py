"""The folder of recorded calls: one JSON file for each distinct call (engine semantics 16).

Answers of tools lie in the folder itself, answers of models in its subfolder `models`, where no tool's file can be.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from workflows.adapters.wire import MIB
from workflows.engine import jsontext
from workflows.engine.values import Json

#: How calls are answered: by the service, by the service with a recording made, by a recording alone.
Mode: TypeAlias = Literal["live", "record", "replay"]
MODES: Final[tuple[Mode, ...]] = ("live", "record", "replay")
#: Where recordings lie unless it is said, seen from the spec's folder.
DEFAULT: Final = Path(".kampong") / "fixtures"
MODELS: Final = "models"
#: The largest answer, stored twice over in the longest spelling that JSON has, stays below it.
SIZE_LIMIT: Final = 64 * MIB

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_KEY_LENGTH: Final = 16
#: File systems take names of 255 bytes. The key is made of the whole name, so nothing falls together.
_NAME_LIMIT: Final = 200


class Unusable(Exception):
    """A fixture cannot be read or written; the text names its file and says why."""


def file_name(name: str, key: str) -> str:
    """`SAFE.KEY.json` for a tool's or a step's name and the SHA-256 of the call: no name leads out of the folder."""
    return f"{_safe(name)}.{key[:_KEY_LENGTH]}.json"


def any_for_tool(folder: Path, tool: str) -> bool:
    """Whether a call of this tool was ever recorded here, judged by the names of the files."""
    pattern = re.compile(rf"{re.escape(_safe(tool))}\.[0-9a-f]{{{_KEY_LENGTH}}}\.json")
    try:
        return any(pattern.fullmatch(name) for name in os.listdir(folder))
    except OSError:
        return False


def why_not(folder: Path, *, writing: bool) -> str | None:
    """Why this folder cannot serve, said before a run starts; None when it can. A missing folder is made later."""
    place = folder
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"fixtures cannot be kept in {folder}: {place} is not a folder"
    if not os.access(place, os.R_OK | os.X_OK) and place == folder:
        return f"the fixtures in {folder} cannot be read: permission denied"
    if writing and not os.access(place, os.W_OK | os.X_OK):
        return f"fixtures cannot be recorded in {folder}: {place} is not writable"
    return None


class Fixtures:
    """Reads and writes the files of one folder. Threads and processes may share it: whoever writes last is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Json] | None:
        """What the file holds, None where there is none; Unusable for what is no fixture."""
        path = self.folder / name
        try:
            text = _text_of(path)
            content = None if text is None else jsontext.loads(text, spare=jsontext.RECORD_LEVELS)
        except OSError as problem:
            raise Unusable(f"the fixture {path} cannot be read: {problem.strerror}") from problem
        except ValueError as problem:
            raise Unusable(f"the fixture {path} is broken: {problem}. Record it again") from problem
        if text is not None and not isinstance(content, dict):
            raise Unusable(f"the fixture {path} is broken: it holds no JSON object. Record it again")
        return content

    def prepare(self) -> str | None:
        """Make the folder and write in it once; why that is not possible, or None."""
        draft = self.folder / f".{secrets.token_hex(8)}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_new(draft, b"")
            draft.unlink()
        except OSError as problem:
            return f"fixtures cannot be recorded in {self.folder}: {problem.strerror}"
        return None

    def write(self, name: str, content: Mapping[str, Json]) -> None:
        """Put it there whole, in place of an earlier one; Unusable when that is not possible."""
        path = self.folder / name
        lines = [f"  {jsontext.dumps(key)}: {jsontext.dumps(value)}" for key, value in content.items()]
        raw = ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "replace")
        if len(raw) > SIZE_LIMIT:
            raise Unusable(f"the fixture {path} cannot be written: it is longer than {SIZE_LIMIT // MIB} MiB")
        # Not a name that a reader looks for: what a killed process leaves behind is nobody's fixture.
        draft = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                _write_new(draft, raw)
                os.replace(draft, path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        except OSError as problem:
            raise Unusable(f"the fixture {path} cannot be written: {problem.strerror}") from problem


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_NAME_LIMIT] or "tool"


def _text_of(path: Path) -> str | None:
    """The file's text. A pipe or a device in its place is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a file")
        raw = file.read(SIZE_LIMIT + 1)
    if len(raw) > SIZE_LIMIT:
        raise ValueError(f"it is longer than {SIZE_LIMIT // MIB} MiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError("it is not UTF-8") from problem


def _write_new(path: Path, raw: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(raw)
