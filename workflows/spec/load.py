"""Loads a spec file: the one entrance of this package (format 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workflows.spec import build
from workflows.spec.errors import Note, SpecError
from workflows.spec.hashing import spec_hash
from workflows.spec.model import Json, Spec
from workflows.spec.notes import Subject, gather
from workflows.spec.reader import Document, read
from workflows.spec.shapes import MOST_FAULTS, Faults, TooManyFaults, kind_of
from workflows.spec.source import Unreadable
from workflows.spec.versions import VERSIONS, Version, version_problem

#: More errors than a reader could use; a last one counts the rest.
MOST_ERRORS = 1000


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Either a spec with notes, or at least one error. `hash` is "" when the file holds no document."""

    spec: Spec | None = None
    errors: tuple[SpecError, ...] = ()
    notes: tuple[Note, ...] = ()
    hash: str = ""


def load(text: str | bytes) -> Loaded:
    """The spec in a file, or what is wrong with it, stage by stage. Never raises for anything a file can contain."""
    try:
        document = read(text)
    except Unreadable as fault:
        message = f"line {fault.line}, column {fault.column}: {fault.reason}"
        error = SpecError(path=(), message=message, line=fault.line, column=fault.column, reason=fault.reason)
        return Loaded(errors=(error,))
    if document is None:
        return Loaded(errors=(SpecError(path=(), message="the file is empty; a spec is a mapping"),))
    loaded = _check(document)
    return replace(loaded, hash=spec_hash(document.tree))


def _check(document: Document) -> Loaded:
    tree, faults = document.tree, Faults()
    if not isinstance(tree, dict):
        faults.hard((), f"a spec is a mapping with the keys version and agent, not {kind_of(tree)}")
        return _refused(document, faults)
    problem = version_problem(tree.get("version"))
    if problem:
        faults.hard(("version",), problem)
    # A file of no known version is checked like the newest one, so that its author sees everything at once.
    version = VERSIONS["1.1"] if problem else VERSIONS[tree["version"]]
    try:
        cleaned = _staged(version, tree, faults)
    except TooManyFaults:
        return _refused(document, faults)
    if faults.found:
        return _refused(document, faults)
    notes = gather(version.notes, Subject(tree=cleaned, written=tree, dropped=tuple(faults.dropped)))
    return Loaded(spec=build.spec(cleaned), notes=tuple(_placed(note, document) for note in notes))


def _staged(version: Version, tree: dict[str, Json], faults: Faults) -> dict[str, Json]:
    """The tree without unknown keys; later stages only run on what they can understand."""
    cleaned: dict[str, Json] = version.shape(tree, (), faults)
    if not faults.any_hard():
        for rule in version.rules:
            rule(cleaned, faults)
    if not faults.found and version.expressions is not None:
        version.expressions(cleaned, faults)
    return cleaned


def _refused(document: Document, faults: Faults) -> Loaded:
    errors = []
    for fault in faults.found[:MOST_ERRORS]:
        line, column = document.position(fault.path) or (None, None)
        errors.append(SpecError(path=fault.path, message=fault.message, line=line, column=column))
    if len(faults.found) > MOST_ERRORS:
        at_least = "at least " if len(faults.found) >= MOST_FAULTS else ""
        more = f"there are {at_least}{len(faults.found) - MOST_ERRORS} more errors"
        errors.append(SpecError(path=(), message=more))
    return Loaded(errors=tuple(errors))


def _placed(note: Note, document: Document) -> Note:
    position = document.position(note.path)
    return note if position is None else replace(note, line=position[0], column=position[1])
