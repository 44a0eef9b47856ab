"""Policies at the prompt of `run_spec`: it asks for reasons, and says that nobody checks who decides (spec 1.2)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.approvals.policies import text_of
from tests.conftest import ROOT
from tests.surfaces.cli.running import command
from workflows.engine import jsontext
from workflows.management.prompting import Answer, read_answer
from workflows.spec.policy_model import Policy

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

ALWAYS, ON_NO = Policy(require_reason="always"), Policy(require_reason="reject")
FORM = "form: {type: object, properties: {copies: {type: integer, default: 2}}}"
NOBODY = "Nobody checks here who decides."
MISSING = "a reason is needed here"


def spec(folder: Path, policy: str) -> str:
    path = folder / "clerk.yaml"
    path.write_text(text_of(f'{{step: sign, type: approval, message: "Really?", {policy}}}'), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    - {step: last, type: tool, tool: last}\n", ""), encoding="utf-8")
    return str(path)


def run(folder: Path, policy: str, *words: str, text: str = "") -> tuple[int, dict[str, object], str]:
    told = command("run_spec", spec(folder, policy), "--input", "x", "--json", *words, text=text)
    return told.code, told.object(), told.err


@pytest.mark.parametrize("line", ["y: read it\n", "YES :  read it \n"])
def test_a_yes_brings_its_reason(tmp_path: Path, line: str) -> None:
    code, told, _ = run(tmp_path, "require_reason: always", text=line)
    assert (code, told["output"]) == (0, {"sign": {"approved": True, "reason": "read it"}})


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ("always", "y\n"),
        ("always", "y:\n"),
        ("always", "n\n"),
        ("always", "n: \n"),
        ("reject", "no\n"),
        ("reject", "maybe\n"),
    ],
)
def test_a_missing_reason_rejects_and_says_why(tmp_path: Path, policy: str, line: str) -> None:
    code, told, err = run(tmp_path, f"require_reason: {policy}", text=line + "y: late\n")
    assert (code, told["status"]) == (2, "rejected")
    assert MISSING in str(told["error"])
    assert MISSING in err


def test_reason_and_answers_go_together() -> None:
    both = Policy(require_reason="always", form={"type": "object", "properties": {"sum": {"type": "number"}}})
    wanted = {
        'y: fine {"sum": 1}': Answer(approved=True, reason="fine", answers={"sum": 1}),
        "y: fine": Answer(approved=True, reason="fine", answers={}),
        "n: no {money}": Answer(approved=False, reason="no {money}"),
    }
    assert {line: read_answer(line, both) for line in wanted} == wanted


def test_where_no_reason_is_asked_for_the_forms_are_those_of_every_spec() -> None:
    assert read_answer("y: fine") == Answer(approved=False)
    assert read_answer("y", ON_NO) == Answer(approved=True)
    assert read_answer("y: fine", ON_NO) == Answer(approved=True, reason="fine")
    assert read_answer("n: no", ALWAYS) == Answer(approved=False, reason="no")


def test_the_end_of_the_input_is_a_rejection_with_its_cause(tmp_path: Path) -> None:
    code, told, err = run(tmp_path, "require_reason: reject")
    assert (code, told["error"]) == (2, "the input ended before an answer")
    assert "input ended" in err


def test_approve_all_says_that_it_approved(tmp_path: Path) -> None:
    _, told, _ = run(tmp_path, "require_reason: always", "--approve-all")
    assert told["output"] == {"sign": {"approved": True, "reason": "approved by --approve-all"}}
    assert run(tmp_path, "require_reason: reject", "--approve-all")[1]["output"] == {"sign": {"approved": True}}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("approvers: {quorum: 2}", True),
        ("approvers: {four_eyes: true}", True),
        ("approvers: {users: [ana]}", True),
        ("approvers: {groups: [finance]}", True),
        ("require_reason: always", False),
        (FORM, False),
    ],
)
def test_it_says_once_that_nobody_checks_who_decides(tmp_path: Path, policy: str, told: bool) -> None:
    assert run(tmp_path, policy, text="n: no\n")[2].count(NOBODY) == told


def test_a_person_at_a_terminal_is_asked_again_for_a_reason(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    path = spec(tmp_path, f"require_reason: always, {FORM}")
    words = [sys.executable, str(ROOT / "manage.py"), "run_spec", path, "--input", "x", "--json"]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        os.write(ours, b'y\ny: fine {"copies": 3}\n')
        out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    wanted = {"sign": {"approved": True, "reason": "fine", "answers": {"copies": 3}}}
    assert jsontext.loads(out.decode())["output"] == wanted
    assert MISSING in err.decode()
    assert "y: REASON {JSON}" in err.decode()


def test_the_prompt_says_that_nothing_is_edited_there(tmp_path: Path) -> None:
    path = tmp_path / "clerk.yaml"
    text = text_of("{step: sign, type: tool, tool: pay}", pay="approval: {editable: [action.url]}")
    path.write_text(text, encoding="utf-8")
    told = command("run_spec", str(path), "--input", "x", text="n: no\n")
    assert "Edits are made on a stored request (--detach)" in told.err + told.out
    assert told.code == 2
