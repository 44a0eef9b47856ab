"""`check_spec`: the object of design 5.1, lines that an editor can follow, and files that are no specs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.surfaces.cli.running import ASKING, command, spec_at
from workflows.specfiles import SPEC_LIMIT

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

NOTED = ASKING.replace("step: second", "step: first") + "  colour: red\n"
WRONG = ASKING.replace("  role: Clerk\n", "").replace("type: approval }", "type: approval, message: 5 }")


def test_a_sound_spec_is_valid_and_says_so(tmp_path: Path) -> None:
    told = command("check_spec", spec_at(tmp_path))

    assert (told.code, told.err) == (0, "")
    assert told.out == "1 valid, 0 invalid; 0 errors, 0 notes\n"


def test_notes_and_errors_stand_with_line_and_column_in_the_order_of_the_file(tmp_path: Path) -> None:
    noted, wrong = spec_at(tmp_path, NOTED, "a.yaml"), spec_at(tmp_path, WRONG, "b.yaml")

    told = command("check_spec", wrong, noted)

    first, second, third, fourth, last = told.out.splitlines()
    assert told.code == 1
    assert first.startswith(f'{wrong}: agent.role: "role" is required')
    assert second.startswith(f"{wrong}:9:48: agent.workflow.1.message: ")
    assert third.startswith(f"{noted}:10:15: agent.workflow.1.step: ")
    assert fourth.startswith(f"{noted}:11:11: agent.colour: ")
    assert fourth.endswith(" [unknown_key]")
    assert last == "1 valid, 1 invalid; 2 errors, 2 notes"


def test_the_object_has_a_result_for_each_file(tmp_path: Path) -> None:
    noted, wrong = spec_at(tmp_path, NOTED, "a.yaml"), spec_at(tmp_path, WRONG, "b.yaml")

    told = command("check_spec", "--json", noted, wrong)

    assert told.code == 1
    good, bad = told.object()["results"]
    assert list(good) == list(bad) == ["file", "valid", "errors", "notes"]
    assert (good["file"], good["valid"], good["errors"]) == (noted, True, [])
    assert [list(note) for note in good["notes"]] == [["code", "path", "message", "line"]] * 2
    assert good["notes"][0]["code"] == "unknown_key"
    assert (good["notes"][0]["path"], good["notes"][0]["line"]) == ("agent.colour", 11)
    assert (bad["file"], bad["valid"], bad["notes"]) == (wrong, False, [])
    missing, typed = bad["errors"]
    assert (missing["path"], missing["line"], missing["column"]) == ("agent.role", None, None)
    assert (typed["path"], typed["line"], typed["column"]) == ("agent.workflow.1.message", 9, 48)


def test_a_folder_stands_for_its_files_and_an_empty_one_passes_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "specs" / "inner").mkdir(parents=True)
    spec_at(tmp_path / "specs", name="b.yml")
    spec_at(tmp_path / "specs", name="a.yaml")
    spec_at(tmp_path / "specs", "no spec", name="c.txt")

    told = command("check_spec", "--json", str(tmp_path / "specs"))
    empty = command("check_spec", str(tmp_path / "specs" / "inner"))

    assert [Path(result["file"]).name for result in told.object()["results"]] == ["a.yaml", "b.yml"]
    assert told.code == 0
    assert empty.code == 1
    assert "no *.yaml" in empty.out


@pytest.mark.parametrize("kind", ["missing", "binary", "huge", "pipe", "dangling", "locked", "empty", "looped"])
def test_what_is_no_spec_is_a_result_with_an_error_and_no_traceback(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    match kind:
        case "binary":
            path.write_bytes(bytes(range(256)) * 8)
        case "huge":
            with open(path, "wb") as file:
                file.truncate(SPEC_LIMIT + 1)
        case "pipe":
            os.mkfifo(path)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "locked":
            path.mkdir()
            (path / "inner.txt").touch()
        case "empty":
            path.touch()
        case "looped":
            path.symlink_to(path)

    told = command("check_spec", "--json", str(path), spec_at(tmp_path, name="sound.yaml"))

    odd, sound = told.object()["results"]
    assert (told.code, odd["file"], odd["valid"], sound["valid"]) == (1, str(path), False, True)
    assert odd["errors"][0]["message"]
    assert odd["notes"] == []


def test_a_message_with_data_of_the_file_stays_one_line(tmp_path: Path) -> None:
    told = command("check_spec", spec_at(tmp_path, ASKING.replace("  workflow:", '  "a\\n\\e[31m": 1\n  workflow:')))

    assert len(told.out.splitlines()) == 2
    assert "\x1b" not in told.out


def test_a_syntax_error_tells_its_place_once(tmp_path: Path) -> None:
    path = spec_at(tmp_path, 'version: "1.1"\nagent:\n  name: [Clerk\n  role: x\n')

    told = command("check_spec", path).out.splitlines()[0]
    run = command("run_spec", path, "--input", "x").err.splitlines()[0]
    (error,) = command("check_spec", "--json", path).object()["results"][0]["errors"]

    place, reason = f"{error['line']}:{error['column']}", error["message"].partition(": ")[2]
    assert error["message"].startswith(f"line {error['line']}, column {error['column']}: ")
    assert told == f"{path}:{place}: {reason}"
    assert run == f"{path}: {place}: {reason}"


@pytest.mark.parametrize("words", [(), ("--json",), ("a.yaml", "--strict")])
def test_wrong_use_is_64(words: tuple[str, ...]) -> None:
    told = command("check_spec", *words)

    assert told.code == 64
    assert told.out == ""
