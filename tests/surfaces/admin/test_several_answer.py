"""A form that several must answer, on the decision page: it begins with what the others answered (spec 1.2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from statestore.clock import now
from tests.approvals.policies import member
from tests.conftest import People
from tests.surfaces.admin.conftest import QUEUE, decide_url
from tests.surfaces.forms import LEAST, LEAST_ANSWERS, answering
from tests.workbench import acting, to_pause
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.runs import newest

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)

TWO = "      approvers: {quorum: 2}\n"
EASY = "type: object\nproperties: {copies: {type: integer, default: 2}, note: {type: string}}"
OTHERS = "Other answers void their approvals"


@pytest.fixture
def asha(people: People, signed_in: SignedIn) -> Client:
    return signed_in(member("asha"))


@pytest.fixture
def bo(people: People, signed_in: SignedIn) -> Client:
    return signed_in(member("bo"))


def as_shown(browser: Client, address: str) -> dict[str, Any]:
    """What a browser sends of the page's form as it stands."""
    page = browser.get(address)
    sent: dict[str, Any] = {"verdict": "approve", "digest": page.context["digest"], "reason": ""}
    if page.context["begun"]:
        assert f'name="begun" value="{page.context["begun"][:5]}'.replace('{"', "{&quot;") in page.content.decode()
        sent["begun"] = page.context["begun"]

    def put(fields: Any) -> None:
        for field in fields:
            put(field.fields)
            if field.control in ("check", "checks"):
                sent[field.path] = list(field.chosen)
            elif field.control != "group":
                sent[field.path] = field.text

    put(page.context["fields"])
    return sent


def votes_of(key: str) -> list[tuple[str, str, Any]]:
    found = AuditEntry.objects.filter(key=key).order_by("id").values_list("act", "actor", "answers")
    return [(act, actor, jsontext.loads(answers)) for act, actor, answers in found]


def test_other_answers_do_not_decide_and_the_page_says_so_before(asha: Client, bo: Client, tmp_path: Path) -> None:
    run, key = to_pause(answering(tmp_path, more=TWO))
    address = decide_url(key)
    first = as_shown(asha, address)
    assert OTHERS not in asha.get(address).content.decode()
    assert asha.post(address, first | LEAST | {"answers.amount": "0"}).status_code == 400
    assert asha.post(address, first | LEAST | {"answers.note": "one"}).status_code == 302
    page = bo.get(address).content.decode()
    assert "1 of 2 approved:" in page
    assert "<li>asha, <time" in page
    assert OTHERS in page
    assert ">one</textarea>" in page.replace("\n", "")
    assert bo.post(address, as_shown(bo, address) | {"answers.note": "two"}).status_code == 302
    assert Run.objects.get(pk=run.pk).status == Status.AWAITING
    assert "<li>bo, <time" in asha.get(address).content.decode()
    assert asha.post(address, as_shown(asha, address)).status_code == 302
    assert newest(run).status == Status.QUEUED
    one, two = (LEAST_ANSWERS | {"note": text} for text in ("one", "two"))
    assert votes_of(key) == [("vote", "asha", one), ("vote", "bo", two), ("decide", "asha", two)]


def test_a_form_left_alone_agrees_also_with_answers_that_no_page_gives(
    asha: Client, people: People, tmp_path: Path
) -> None:
    """Over HTTP a box may be absent and a text empty; a browser sends neither."""
    run, key = to_pause(answering(tmp_path, more=TWO))
    given = {"amount": 12, "account": "petty cash", "note": "", "tell": ["bookkeeping", "vendor"]}
    decide(key, approved=True, answers=given, actor=acting(people.approver))
    assert asha.post(decide_url(key), as_shown(asha, decide_url(key))).status_code == 302
    assert newest(run).status == Status.QUEUED
    assert votes_of(key)[1] == ("decide", "asha", given | {"copies": 1})


def test_answers_that_came_meanwhile_are_not_taken_for_those_that_were_shown(
    asha: Client, people: People, tmp_path: Path
) -> None:
    run, key = to_pause(answering(tmp_path, more=TWO))
    shown = {"amount": 12, "account": "main"}
    decide(key, approved=True, answers=shown, actor=acting(people.approver))
    sent = as_shown(asha, decide_url(key))
    decide(key, approved=True, answers=shown | {"urgent": False}, actor=acting(member("chitra")))
    assert asha.post(decide_url(key), sent).status_code == 302
    assert newest(run).status == Status.QUEUED, "the first approver and asha agree"
    assert votes_of(key)[2] == ("decide", "asha", shown | {"copies": 1})
    decided = jsontext.loads(AuditEntry.objects.get(key=key, act="decide").policy)["votes"]
    assert [vote["by"] for vote in decided] == ["approver", "asha"]


@pytest.mark.parametrize("begun", ["{", "[]", '{"amount": "x"}', '{"copies": 1}', "\ud800"])
def test_a_beginning_that_is_none_is_not_taken(asha: Client, tmp_path: Path, begun: str) -> None:
    _, key = to_pause(answering(tmp_path))
    sent = as_shown(asha, decide_url(key)) | LEAST | {"begun": begun.encode(errors="replace").decode()}
    assert asha.post(decide_url(key), sent).status_code == 302
    assert votes_of(key) == [("decide", "asha", LEAST_ANSWERS)]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process's clock is a year ahead of the database's."""

    def ahead() -> datetime:
        return now() + timedelta(days=365)

    monkeypatch.setattr("approvals.wording.now", ahead)


def test_a_clock_that_is_ahead_approves_nothing_that_was_typed_wrongly(
    asha: Client, tmp_path: Path, fast: None
) -> None:
    run, key = to_pause(answering(tmp_path, form=EASY))
    request = ApprovalRequest.objects.get(key=key)
    sent = {"verdict": "approve", "digest": request.digest, "reason": "", "answers.copies": "many"}
    assert asha.post(decide_url(key), sent).status_code == 400
    assert Run.objects.get(pk=run.pk).status == Status.AWAITING


def test_a_clock_that_is_ahead_approves_no_form_in_bulk(asha: Client, tmp_path: Path, fast: None) -> None:
    run, key = to_pause(answering(tmp_path, form=EASY))
    request = ApprovalRequest.objects.get(key=key)
    fields = {"confirmed": "yes", "pick": [request.pk], f"digest-{request.pk}": request.digest, "reason": ""}
    told = asha.post(f"{QUEUE}bulk/", {"act": "approve", **fields})
    assert "open it to answer" in told.context["results"][0]["told"]
    assert Run.objects.get(pk=run.pk).status == Status.AWAITING
