"""A policy's form in a terminal: shown, answered, and refused where the answers do not fit (spec 1.2, `form`)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from approvals.models import AuditEntry
from tests.approvals.policies import member
from tests.conftest import ROOT, People
from tests.surfaces.cli.running import command
from tests.surfaces.forms import LEAST_ANSWERS, answering
from tests.workbench import to_pause
from workflows.engine import jsontext
from workflows.management.prompting import Answer, read_answer
from workflows.models import Status
from workflows.runs import newest
from workflows.spec.policy_model import Policy

AS = ("--as", "approver")
#: Nothing is needed here: defaults suffice.
EASY = "type: object\nproperties: {copies: {type: integer, default: 2, maximum: 3}, note: {type: string}}"
NEEDY = "type: object\nrequired: [sum]\nproperties: {sum: {type: number, minimum: 1}}"

pytestmark = pytest.mark.django_db(transaction=True)


def _run(folder: Path, form: str, *words: str, text: str = "") -> tuple[int, dict[str, object]]:
    spec = answering(folder, form=form)
    told = command("run_spec", str(spec.path), "--input", "x", "--json", *words, text=text)
    return told.code, told.object()


def test_show_lists_the_fields_and_a_line_to_fill_in(tmp_path: Path, people: People) -> None:
    _, key = to_pause(answering(tmp_path))
    told = command("approvals", "show", key, *AS).out
    for words in (
        "amount (number, needed; at least 1; at most 500): Amount to pay - What we owe, in SGD.",
        "account (text, needed; one of main, petty cash)",
        "copies (whole number; at least 0; 1 unless you say)",
        "tags (list of text; at least 2 characters)",
        "address.city (text, needed)",
        """--answers '{"amount":0,"account":"main"}'""",
    ):
        assert words in told
    assert command("approvals", "show", key, *AS, "--json").object()["form"]["required"] == ["amount", "account"]


def test_approve_with_answers_goes_on_and_bad_ones_change_nothing(tmp_path: Path, people: People) -> None:
    run, key = to_pause(answering(tmp_path))
    for bad, words in (
        ('{"amount": 0, "account": "main"}', "answers.amount: must be at least 1"),
        ('{"amount": 1, "account": "main", "more": 1}', "answers.more: the form has no such field"),
        ("[]", "an object with the fields of the form is needed"),
    ):
        told = command("approvals", "approve", key, *AS, "--answers", bad)
        assert (told.code, words in told.err) == (2, True), told
    assert command("approvals", "approve", key, *AS).code == 2
    assert newest(run).status == Status.AWAITING
    good = '{"amount": 120.5, "account": "main", "urgent": false}'
    told = command("approvals", "approve", key, *AS, "--answers", good)
    assert "Approved by approver" in told.out
    assert jsontext.loads(AuditEntry.objects.get(act="decide").answers) == LEAST_ANSWERS


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("y\n", {"copies": 2}),
        ("yes {}\n", {"copies": 2}),
        ('Y {"copies": 3, "note": "a } b"}\n', {"copies": 3, "note": "a } b"}),
        ('y{"copies":1}\n', {"copies": 1}),
    ],
)
def test_y_takes_the_answers_or_the_defaults(tmp_path: Path, line: str, answers: object) -> None:
    code, told = _run(tmp_path, EASY, text=line)
    assert code == 0
    assert told["output"] == {"sign": {"approved": True, "answers": answers}}


@pytest.mark.parametrize(
    ("form", "line", "words"),
    [
        (EASY, 'y {"copies": 4}\n', "answers.copies: must be at most 3"),
        (EASY, 'y {"copies": \n', "not JSON"),
        (EASY, 'y {"copy": 1}\n', "answers.copy: the form has no such field"),
        (NEEDY, "y\n", "answers.sum: is required"),
        (NEEDY, 'yes please {"sum": 1}\n', "The approval was rejected."),
        (NEEDY, "n: no money\n", "no money"),
    ],
)
def test_answers_that_do_not_fit_reject_and_say_why(tmp_path: Path, form: str, line: str, words: str) -> None:
    code, told = _run(tmp_path, form, text=line + 'y {"sum": 1}\n')
    assert (code, told["status"]) == (2, "rejected")
    assert words in str(told["error"])


def test_json_after_yes_is_no_answer_where_there_is_no_form() -> None:
    assert read_answer("y {}", Policy()) == Answer(approved=False)


def test_approve_all_takes_the_defaults_and_rejects_where_an_answer_is_needed(tmp_path: Path) -> None:
    assert _run(tmp_path, EASY, "--approve-all")[1]["output"] == {"sign": {"approved": True, "answers": {"copies": 2}}}
    code, told = _run(tmp_path, NEEDY, "--approve-all")
    assert (code, told["status"]) == (2, "rejected")
    assert "--approve-all cannot answer the form: " in str(told["error"])
    assert "answers.sum: is required" in str(told["error"])


def test_a_person_at_a_terminal_is_told_and_asked_again(tmp_path: Path) -> None:
    spec = answering(tmp_path, form=NEEDY)
    ours, theirs = pty.openpty()
    words = [sys.executable, str(ROOT / "manage.py"), "run_spec", str(spec.path), "--input", "x", "--json"]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        os.write(ours, b'y\ny {"sum": 0}\ny {"sum": 5}\n')
        out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert jsontext.loads(out.decode())["output"] == {"sign": {"approved": True, "answers": {"sum": 5}}}
    assert "answers.sum: is required" in err.decode()
    assert "answers.sum: must be at least 1" in err.decode()


def test_show_says_what_the_others_answered_and_offers_it(tmp_path: Path, people: People) -> None:
    run, key = to_pause(answering(tmp_path, form=EASY, more="      approvers: {quorum: 2}\n"))
    given = '{"copies":3,"note":"ask Bo"}'
    told = command("approvals", "approve", key, *AS, "--answers", given)
    assert (told.code, "1 of 2" in told.out) == (3, True), told
    member("bo")
    shown = command("approvals", "show", key, "--as", "bo").out
    assert "Approved so far by approver." in shown
    assert "other answers void their approvals" in shown
    assert f"--answers '{given}'" in shown
    assert command("approvals", "approve", key, "--as", "bo", "--answers", given).code == 0
    assert newest(run).status != Status.AWAITING
