"""A policy's form over HTTP: the schema to fill in, and the answers with the decision (spec 1.2, `form`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.models import AuditEntry
from tests.surfaces.api.conftest import Callers
from tests.surfaces.forms import FORM, LEAST_ANSWERS, answering
from tests.workbench import ASKING, to_pause, write_spec
from workflows.engine import jsontext
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


def _approve(callers: Callers, key: str, **body: Any) -> Any:
    return callers.approver.post(f"/approvals/{key}/approve?wait=0", body)


def test_the_detail_carries_the_form_as_it_is_written(callers: Callers, folder: Path) -> None:
    _, key = to_pause(answering(folder))
    assert callers.approver.get(f"/approvals/{key}").json()["form"] == yaml.safe_load(FORM)
    _, plain = to_pause(write_spec(folder, ASKING, agent_id="plain", name="plain.yaml"))
    assert "form" not in callers.approver.get(f"/approvals/{plain}").json()


def test_answers_go_with_the_decision(callers: Callers, folder: Path) -> None:
    run, key = to_pause(answering(folder))
    told = _approve(callers, key, approved=True, answers={"amount": 120.5, "account": "main", "urgent": False})
    assert told.status_code == 200
    assert newest(run).status != Status.AWAITING
    assert jsontext.loads(AuditEntry.objects.get(act="decide").answers) == LEAST_ANSWERS


def test_answers_that_do_not_fit_are_told_field_by_field_and_consume_nothing(callers: Callers, folder: Path) -> None:
    run, key = to_pause(answering(folder))
    for answers, paths in (
        (None, ["answers.amount", "answers.account"]),
        ({}, ["answers.amount", "answers.account"]),
        ({"amount": "1", "account": "other", "x": 1}, ["answers.amount", "answers.account", "answers.x"]),
        ({"amount": 1, "account": "main", "address": {"city": 1}}, ["answers.address.city"]),
        ([1], ["answers"]),
    ):
        told = _approve(callers, key, approved=True, answers=answers)
        assert (told.status_code, told.json()["code"]) == (400, "invalid")
        assert [error["path"] for error in told.json()["errors"]] == paths
    assert newest(run).status == Status.AWAITING
    assert _approve(callers, key, approved=False).status_code == 200


def test_a_request_without_a_form_takes_no_answers(callers: Callers, folder: Path) -> None:
    _, key = to_pause(write_spec(folder, ASKING, agent_id="plain", name="plain.yaml"))
    assert _approve(callers, key, approved=True, answers={}).json()["errors"][0]["path"] == "answers"


def test_a_rejection_keeps_none_and_only_looks_whether_they_are_an_object(callers: Callers, folder: Path) -> None:
    _, key = to_pause(answering(folder))
    assert _approve(callers, key, approved=False, answers=[1]).json()["errors"][0]["path"] == "answers"
    assert _approve(callers, key, approved=False, answers={"amount": 1, "account": "main"}).status_code == 200
    assert AuditEntry.objects.get(act="decide").answers == ""


def test_the_votes_say_what_was_answered(callers: Callers, folder: Path) -> None:
    _, key = to_pause(answering(folder, more="      approvers: {quorum: 2}\n"))
    given = {"amount": 1, "account": "main"}
    told = _approve(callers, key, approved=True, answers=given).json()["state"]["pendingApproval"]["votes"]
    assert (told["given"], told["by"][0]["answers"]) == (1, given | {"copies": 1})
    (vote,) = callers.approver.get(f"/approvals/{key}").json()["votes"]
    assert vote["answers"] == given | {"copies": 1}
