"""Loads many mutated specs in a process of its own and tells, one JSON line each, what no file may bring about.

python -m tests.spec.mutated_child SEED FIRST END
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from typing import Any

from tests.spec.largest import FILES
from tests.spec.mutations import mutated, seeds
from workflows.spec.errors import SpecError
from workflows.spec.load import Loaded, load
from workflows.spec.reader import read
from workflows.spec.source import Unreadable

MOST_SECONDS = 1.0
MOST_SECONDS_OF_4_MIB = 6.0
MOST_BYTES = 100 * 1024 * 1024
LONGEST_MESSAGE = 20_000


def complaints(data: str | bytes, most_seconds: float) -> list[str]:
    """What is wrong with how this file was answered; empty when all is well."""
    before = time.process_time()
    try:
        loaded = load(data)
    except Exception as error:  # noqa: BLE001  whatever it is, it must not be
        return [f"it raised {type(error).__name__}: {str(error)[:200]}"]
    seconds = time.process_time() - before
    found = [f"it took {seconds:.1f} s"] if seconds > most_seconds else []
    if (loaded.spec is None) != bool(loaded.errors):
        found.append("neither a spec nor an error, or both")
    return found + _badly_told(data, loaded)


def _badly_told(data: str | bytes, loaded: Loaded) -> list[str]:
    found = [f"a message of {len(error.message)}" for error in loaded.errors if len(error.message) > LONGEST_MESSAGE]
    found += ["an error without a message" for error in loaded.errors if not error.message.strip()]
    try:
        document = read(data)
    except Unreadable:
        (error,) = loaded.errors
        if error.path or error.line is None or error.column is None or f"line {error.line}" not in error.message:
            found.append(f"a syntax error that does not say where: {error}")
        return found
    tree = None if document is None else document.tree
    for error in loaded.errors:
        if document is not None and _has_place(error) != _is_there(tree, error):
            found.append(f"its place is wrong: {error}")
    return found


def _has_place(error: SpecError) -> bool:
    return error.line is not None and error.line > 0 and error.column is not None and error.column > 0


def _is_there(tree: Any, error: SpecError) -> bool:
    if error.message.startswith("there are ") and not error.path:
        return False
    for key in error.path:
        known = (
            key in tree
            if isinstance(tree, dict)
            else isinstance(tree, list) and isinstance(key, int) and key < len(tree)
        )
        if not known:
            return False
        tree = tree[key]
    return True


def _load_mutants(seed: str, first: int, end: int) -> None:
    texts = seeds()
    for number in range(first, end):
        _judge(f"{seed} {number}", mutated(random.Random(f"{seed} {number}"), texts), MOST_SECONDS)
    _tell({"done": end - first})


def _load_largest(names: list[str]) -> None:
    for name in names or FILES:
        _judge(name, FILES[name](), MOST_SECONDS_OF_4_MIB)
    _tell({"done": len(names or FILES)})


def _judge(name: str, data: str | bytes, most_seconds: float) -> None:
    before = _peak()
    found = complaints(data, most_seconds)
    if _peak() > before and _peak() - _at_start > MOST_BYTES:
        found.append(f"the process has grown by {(_peak() - _at_start) >> 20} MB")
    if found:
        _tell({"name": name, "found": found[:20]})


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    load("version: x")
    _at_start = _peak()
    if sys.argv[1] == "mutants":
        _load_mutants(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        _load_largest(sys.argv[2:])
