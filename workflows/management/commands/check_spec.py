"""`check_spec`: everything that is wrong with specs, and everything that their authors should know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from workflows.engine.values import Json
from workflows.management.answers import AnsweringCommand
from workflows.management.base import BAD_SPEC, DONE
from workflows.management.terminal import one_line
from workflows.spec.errors import Note, SpecError
from workflows.specfiles import BrokenFile, SpecFile, SpecFiles, broken, paths_in


class Command(AnsweringCommand):
    help = "Check specs: errors and notes with line and column. A folder stands for its *.yaml and *.yml files."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("specs", nargs="+", metavar="SPEC", help="spec files and folders")
        parser.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")

    def perform(self, **options: Any) -> int:
        files = _read(options["specs"])
        if not options["json"]:
            return self._tell(files)
        results = [_result(file) for file in files]
        self.answer({"results": results})
        return DONE if all(result["valid"] for result in results) else BAD_SPEC

    def _tell(self, files: Iterable[SpecFile | BrokenFile]) -> int:
        valid = invalid = errors = notes = 0
        for file in files:
            self.show_lines(_lines(file))
            errors += len(_errors(file))
            notes += len(_notes(file))
            invalid += isinstance(file, BrokenFile)
            valid += isinstance(file, SpecFile)
        self.show(f"{valid} valid, {invalid} invalid; {_count(errors, 'error')}, {_count(notes, 'note')}")
        return BAD_SPEC if invalid else DONE


def _read(given: Iterable[str]) -> Iterator[SpecFile | BrokenFile]:
    """Each file under what was given, as it was given. A pipe is refused: reading one could wait for ever."""
    disk = SpecFiles()
    for name in given:
        source = Path(name)
        paths = paths_in(source)
        if not paths:
            yield broken(source, "this folder holds no *.yaml and no *.yml file")
        for path in paths:
            yield disk.read(path)


def _errors(file: SpecFile | BrokenFile) -> tuple[SpecError, ...]:
    return file.errors if isinstance(file, BrokenFile) else ()


def _notes(file: SpecFile | BrokenFile) -> tuple[Note, ...]:
    return file.notes if isinstance(file, SpecFile) else ()


def _result(file: SpecFile | BrokenFile) -> dict[str, Json]:
    """One file's part of the object (design 5.1)."""
    return {
        "file": str(file.path),
        "valid": isinstance(file, SpecFile),
        "errors": [
            {"path": error.where, "message": error.message, "line": error.line, "column": error.column}
            for error in _errors(file)
        ],
        "notes": [
            {"code": note.code, "path": note.where, "message": note.message, "line": note.line} for note in _notes(file)
        ],
    }


def _lines(file: SpecFile | BrokenFile) -> list[str]:
    """`file:line:column: path: message`, by position; what has none comes first."""
    found: list[SpecError | Note] = [*_errors(file), *_notes(file)]
    found.sort(key=lambda one: (one.line or 0, one.column or 0))
    return [_line(file.path, one) for one in found]


def _line(path: Path, one: SpecError | Note) -> str:
    place = f"{path}:{one.line}:{one.column}" if one.line is not None else str(path)
    where = f"{one.where}: " if one.path else ""
    code = f" [{one.code}]" if isinstance(one, Note) else ""
    message = one.message if isinstance(one, Note) else one.beside_place
    return one_line(f"{place}: {where}{message}{code}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
