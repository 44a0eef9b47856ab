"""The tree: files and functions that can be read at once, keys matched whole, no traces of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from tests.architecture.floors import ROOT, modules

LONGEST_FILE, LONGEST_TEST, LONGEST_FUNCTION = 399, 299, 49
PYTHON_PLACES = ("statestore", "workflows", "approvals", "kampong", "tests", "examples", "docs", "bench")


def python_files() -> list[Path]:
    files = [path for place in PYTHON_PLACES for path in (ROOT / place).rglob("*.py")]
    return [path for path in files if "migrations" not in path.parts]


def tree_files() -> list[Path]:
    """What a checkout holds: tracked and new files, without what is ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for name in listed if name and (path := ROOT / name).is_file()]


def test_files_can_be_read_in_one_sitting() -> None:
    long = []
    for path in python_files():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        allowed = LONGEST_TEST if path.is_relative_to(ROOT / "tests") else LONGEST_FILE
        if lines > allowed:
            long.append(f"{path.relative_to(ROOT)} has {lines} lines, {allowed} are allowed")
    assert not long, "\n".join(long)


def test_functions_fit_on_a_screen() -> None:
    long = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines")
    assert not long, "\n".join(long)


PATTERN_LOOKUP = re.compile(
    r"\bkey__i?(startswith|endswith|contains|regex)\b|\bkey\"?\s+(NOT\s+)?(I?LIKE|GLOB|SIMILAR)\b", re.IGNORECASE
)


def test_keys_are_never_matched_by_a_pattern() -> None:
    """A prefix is a range of keys: LIKE reads `_` and `%` in them, and folds case on SQLite."""
    found = [
        f"{module}: {match[0]}"
        for module, path in modules().items()
        for match in PATTERN_LOOKUP.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_pattern_on_keys_would_be_found() -> None:
    assert PATTERN_LOOKUP.search("objects.filter(key__startswith=prefix)")
    assert PATTERN_LOOKUP.search('WHERE "key" LIKE %s')
    assert not PATTERN_LOOKUP.search("objects.filter(key__gte=prefix)")


# Home folders and the places where checkouts of one person lie; spelled so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work/(?:main|shared)|root/|home/\w+/|Users/\w+/)")


def test_nothing_names_a_place_on_one_machine() -> None:
    found = []
    for path in tree_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert not found, "\n".join(found)
