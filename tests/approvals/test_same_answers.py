"""Several who approve a form approve the same answers: others void the votes before them (spec 1.2, as for edits)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.http import QueryDict

from approvals import formfields as forms
from approvals import policy
from approvals.models import ApprovalRequest, AuditEntry, Vote
from approvals.queue import detail
from approvals.services import Outcome, decide
from tests.approvals.policies import a_sign, member
from tests.surfaces.forms import FORM, LEAST_ANSWERS, answering
from tests.workbench import acting, to_pause, work
from workflows.engine import jsontext
from workflows.errors import NotAllowed
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

MAIN = {"amount": 5, "account": "main"}
PETTY = {"amount": 5, "account": "petty cash"}


@pytest.fixture
def three(db: None) -> list[User]:
    return [member(name) for name in ("asha", "bo", "chitra")]


def waiting(folder: Path, quorum: int = 2) -> tuple[Run, str]:
    return to_pause(answering(folder, more=f"      approvers: {{quorum: {quorum}}}\n"))


def approve(key: str, user: User, answers: Any, **more: Any) -> Outcome:
    return decide(key, approved=True, actor=acting(user), answers=answers, **more)


def names(outcome: Outcome) -> list[str]:
    assert outcome.votes is not None
    return [vote["by"] for vote in outcome.votes["by"]]


def test_other_answers_decide_nothing_and_void_the_vote_before(tmp_path: Path, three: list[User]) -> None:
    asha, bo, _ = three
    run, key = waiting(tmp_path)
    assert names(approve(key, asha, MAIN)) == ["asha"]
    assert names(approve(key, bo, PETTY)) == ["bo"]
    assert newest(run).status == Status.AWAITING
    assert approve(key, asha, PETTY).votes is None
    work()
    assert run_state(run)["finalOutput"]["sign"]["answers"]["account"] == "petty cash"
    kept = AuditEntry.objects.order_by("id").values_list("act", "actor", "answers")
    told = [(act, actor, jsontext.loads(answers)["account"]) for act, actor, answers in kept]
    assert told == [("vote", "asha", "main"), ("vote", "bo", "petty cash"), ("decide", "asha", "petty cash")]
    proof = jsontext.loads(AuditEntry.objects.get(act="decide").policy)
    assert [vote["by"] for vote in proof["votes"]] == ["bo", "asha"]


def test_who_counts_may_not_vote_again_and_who_was_voided_may(tmp_path: Path, three: list[User]) -> None:
    asha, bo, _ = three
    _, key = waiting(tmp_path, quorum=3)
    approve(key, asha, MAIN)
    for answers in (MAIN, PETTY):
        with pytest.raises(NotAllowed, match="you approved this already"):
            approve(key, asha, answers)
    approve(key, bo, PETTY)
    request = ApprovalRequest.objects.get(key=key)
    for user, may in ((asha, True), (bo, False)):
        seen = policy.Person(acting(user))
        seen.look_at([request])
        assert seen.may(request, approve=True).allowed is may
        assert detail(key, acting(user))["may"]["approve"] is may
    assert names(approve(key, asha, MAIN)) == ["asha"]
    assert Vote.objects.count() == 2


def test_the_same_answers_are_the_same_however_they_are_written(tmp_path: Path, three: list[User]) -> None:
    asha, bo, chitra = three
    run, key = waiting(tmp_path, quorum=3)
    approve(key, asha, {"account": "main", "amount": 5})
    assert names(approve(key, bo, {"amount": 5.0, "copies": 1, "account": "main"})) == ["asha", "bo"]
    assert approve(key, chitra, MAIN).votes is None
    assert newest(run).status == Status.QUEUED


def test_a_vote_on_another_action_voids_nothing(tmp_path: Path, three: list[User]) -> None:
    asha, bo, chitra = three
    run, key = waiting(tmp_path)
    approve(key, asha, MAIN)
    approve(key, bo, PETTY)
    Vote.objects.filter(user_id=bo.pk).update(digest="1:other")
    assert approve(key, chitra, MAIN).votes is None
    assert newest(run).status == Status.QUEUED


def test_the_detail_says_what_each_answered(tmp_path: Path, three: list[User]) -> None:
    asha, bo, _ = three
    _, key = waiting(tmp_path)
    approve(key, asha, MAIN)
    (vote,) = detail(key, acting(bo))["votes"]
    assert (vote["by"], vote["answers"]) == ("asha", MAIN | {"copies": 1})
    _, plain = to_pause(a_sign(tmp_path, "approvers: {quorum: 2}"))
    decide(plain, approved=True, actor=acting(asha))
    assert set(detail(plain, acting(bo))["votes"][0]) == {"by", "at"}


def test_whoever_votes_in_whatever_order_nobody_stands_for_answers_of_others(tmp_path: Path, three: list[User]) -> None:
    dice = random.Random(20)
    spec = answering(tmp_path, more="      approvers: {quorum: 2}\n")
    for number in range(8):
        run, key = to_pause(spec, input=f"case {number}")
        said: dict[str, str] = {}
        for _ in range(40):
            user, answers = dice.choice(three), dice.choice((MAIN, PETTY))
            try:
                outcome = approve(key, user, answers)
            except NotAllowed:
                continue
            said[user.username] = str(answers["account"])
            if outcome.votes is None:
                break
        assert newest(run).status == Status.QUEUED
        entry = AuditEntry.objects.get(key=key, act="decide")
        counted = [vote["by"] for vote in jsontext.loads(entry.policy)["votes"]]
        assert len(counted) == 2
        assert {said[name] for name in counted} == {jsontext.loads(entry.answers)["account"]}


def test_a_rejection_keeps_no_answers(tmp_path: Path, three: list[User]) -> None:
    spec = answering(tmp_path, more="      on_reject: continue\n")
    for answers in (MAIN, {"amount": "nonsense"}, {}):
        run, key = to_pause(spec)
        decide(key, approved=False, actor=acting(three[0]), answers=answers)
        assert AuditEntry.objects.get(key=key).answers == ""
        work()
        assert "answers" not in run_state(run)["finalOutput"]["sign"]


def test_a_form_that_stands_as_it_began_gives_the_answers_with_which_it_began() -> None:
    """Also where the page cannot tell them from others: a box that was never there, an empty text, a list's order."""
    form = answering_form()
    for begun in (
        MAIN | {"copies": 1},
        LEAST_ANSWERS | {"note": "", "tags": [], "tell": ["bookkeeping", "vendor"]},
        LEAST_ANSWERS | {"reference": "R-1\nR-2", "address": {"city": "", "country": "SG"}, "parts": [{"sum": 1}]},
        LEAST_ANSWERS | {"tags": ["two\nlines", " x "], "address": {"city": "Ipoh", "point": {"lat": 4.6}}},
    ):
        sent = as_sent(forms.fields(form, begun=begun))
        assert forms.read(form, sent, begun) == (begun, [])
        sent.setlist("answers.amount", ["7"])
        answers, errors = forms.read(form, sent, begun)
        assert errors == []
        assert answers["amount"] == 7
        assert answers["account"] == "main"


def answering_form() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FORM)
    return loaded


def as_sent(drawn: tuple[forms.Field, ...]) -> Any:
    """What a browser sends of these fields as they stand."""
    sent = QueryDict(mutable=True)
    for field in drawn:
        if field.control == "group":
            sent.update(as_sent(field.fields))
        elif field.control in ("check", "checks"):
            sent.setlist(field.path, list(field.chosen))
        else:
            sent.setlist(field.path, [field.text.replace("\n", "\r\n")])
    return sent
