"""Notes: one for each thing that loads and does not do what it seems to, with its place and a next move."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spec.innocent import INNOCENT
from tests.spec.noted import FINDINGS, http, steps, tools
from tests.spec.specs import accepted, spec
from workflows.spec.errors import Note
from workflows.spec.notes import CODES, MOST_OF_A_CODE

PAGE = Path(__file__).parents[2] / "docs" / "notes.md"


def notes(text: str) -> dict[str, list[Note]]:
    found: dict[str, list[Note]] = {}
    for note in accepted(text).notes:
        found.setdefault(note.code, []).append(note)
    return found


@pytest.mark.parametrize(("code", "version", "rest", "where", "words"), FINDINGS)
def test_a_finding_is_noted_at_its_place_with_what_to_do(
    code: str, version: str, rest: str, where: str, words: list[str]
) -> None:
    text = spec(rest, version)
    (note,) = notes(text)[code]

    assert note.where == where
    assert note.line is not None
    assert all(word in note.message for word in words), note.message
    key = str(next(part for part in reversed(note.path) if isinstance(part, str)))
    assert key in text.splitlines()[note.line - 1]


def test_a_default_with_text_around_its_reference_is_noted() -> None:
    text = spec("").replace("agent:\n", "vars: {zone: {type: string, default: 'eu-${REGION}'}}\nagent:\n", 1)
    (note,) = notes(text)["default_not_expanded"]

    assert (note.where, note.line) == ("vars.zone.default", 2)


@pytest.mark.parametrize(("code", "version", "rest"), INNOCENT)
def test_what_only_looks_like_a_finding_is_not_noted(code: str, version: str, rest: str) -> None:
    assert code not in notes(spec(rest, version))


def test_a_spec_of_many_findings_gets_so_many_notes_and_one_that_counts_the_rest() -> None:
    found = notes(spec("".join(f"  key_{number}: 1\n" for number in range(300))))["unknown_key"]

    assert [note.where for note in found] == [f"agent.key_{number}" for number in range(MOST_OF_A_CODE + 1)]
    assert found[-1].message == f"and {300 - MOST_OF_A_CODE} more of this kind, the first of them here"


def test_a_step_that_was_taken_for_another_kind_is_one_note_and_not_one_for_each_key() -> None:
    found = accepted(spec(steps("{step: s, type: condition, if: a, then: b, action: c}"))).notes

    assert [note.code for note in found] == ["step_taken_as_action"]


def test_notes_come_in_the_order_of_their_codes() -> None:
    text = spec(tools(http(", colour: red", "x"), http(name="x")) + steps("{step: s, type: tool, tool: y}"))

    found = [note.code for note in accepted(text).notes]

    assert found == ["unknown_key", "duplicate_tool_name", "unknown_tool"]


def test_every_code_has_a_finding_here_and_a_row_on_the_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert {code for code, *_ in FINDINGS} | {"default_not_expanded", "secret_var_written"} == set(CODES)
    assert tuple(rows) == CODES


def test_a_password_in_an_address_is_not_repeated() -> None:
    found = notes(spec("  model: {provider: ollama, name: m, base_url: 'someone:hunter2@localhost:11434'}\n"))

    assert "hunter2" not in found["base_url_not_http"][0].message
