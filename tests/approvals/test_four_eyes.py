"""Whoever started the run may not approve it, on no surface, as superuser neither; rejecting is theirs (spec 1.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings

from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail
from approvals.services import decide
from tests.approvals.policies import a_pay, a_sign, member
from tests.conftest import People, allow
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.workbench import acting, begin, key_of, to_pause, work
from workflows.actors import Actor
from workflows.errors import NotAllowed
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "four eyes: whoever started the run may not approve it, only reject it"
FOUR = "approvers: {four_eyes: true}"


@pytest.fixture(params=[False, True], ids=["plain", "superuser"])
def ben(request: pytest.FixtureRequest, db: None) -> User:
    """Who starts runs and may decide as well."""
    return allow(member("ben", superuser=request.param), "workflows.start_run", "workflows.operate_run")


@pytest.fixture
def spec(tmp_path: Path) -> SpecFile:
    return a_sign(tmp_path, FOUR)


def untouched(run: Run) -> bool:
    return newest(run).status == Status.AWAITING and not AuditEntry.objects.exists()


def test_over_rest(spec: SpecFile, ben: User, people: People, tmp_path: Path) -> None:
    caller = with_token(ben)
    with override_settings(KAMPONG_SPECS=[str(tmp_path)]):
        run_id = caller.post("/runs", {"agent": "clerk", "input": "go"}).json()["id"]
        work()
        run = Run.objects.get(uuid=run_id)
        key = key_of(run)
        for path in (f"/approvals/{key}/approve", f"/runs/{run_id}/approve"):
            refused = caller.post(path, {"approved": True})
            assert (refused.status_code, refused.json()["code"], refused.json()["rule"]) == (403, "not_allowed", RULE)
        assert untouched(run)
        shown = caller.get(f"/approvals/{key}").json()["may"]
        wanted = {"decide": True, "approve": False, "reject": True, "delegate": False, "rule": RULE}
        assert shown == wanted | {"breakGlass": ben.is_superuser}
        assert caller.post(f"/approvals/{key}/approve?wait=0", {"approved": False}).status_code == 200
    assert newest(run).status == Status.REJECTED


def test_in_the_admin(spec: SpecFile, ben: User) -> None:
    run, key = to_pause(spec, actor=acting(ben))
    request = ApprovalRequest.objects.get(key=key)
    browser = Client()
    browser.force_login(ben)
    page = f"/admin/approvals/approvalrequest/{request.pk}/decide/"
    shown = browser.get(page).content.decode()
    assert "You may not approve this: four eyes" in shown
    assert 'value="approve" disabled' in shown
    posted = browser.post(page, {"verdict": "approve", "digest": request.digest})
    assert posted.status_code == 403
    assert untouched(run)
    assert browser.post(page, {"verdict": "reject", "digest": request.digest}).status_code == 302
    assert newest(run).status == Status.REJECTED


def test_at_the_command_line(spec: SpecFile, ben: User) -> None:
    run, key = to_pause(spec, actor=acting(ben))
    told = command("approvals", "approve", key, "--as", "ben")
    assert (told.code, told.out) == (2, "")
    assert "four eyes" in told.err
    assert untouched(run)
    assert command("approvals", "reject", key, "--as", "ben").code == 0
    assert newest(run).status == Status.REJECTED


def test_it_holds_for_the_whole_chain_whoever_restarts_it(tmp_path: Path, ben: User, people: People) -> None:
    text = a_pay(tmp_path, FOUR, url="http://127.0.0.1:9")
    run, key = to_pause(text, actor=acting(ben))
    decide(key, approved=True, actor=acting(people.approver))
    work()
    assert newest(run).status == Status.FAILED
    again = retry_run(newest(run), actor=acting(people.operator), reason="once more")
    again.step_index, again.decision = 0, ""
    again.save()
    work()
    again.refresh_from_db()
    assert again.status == Status.AWAITING
    with pytest.raises(NotAllowed, match="four eyes"):
        decide(key_of(again), approved=True, actor=acting(ben))


def test_a_run_that_nobody_started_can_be_approved_by_everybody(spec: SpecFile, ben: User) -> None:
    run, key = to_pause(spec, actor=Actor(label="webhook", surface="api"))
    decide(key, approved=True, actor=acting(ben))
    assert newest(run).status == Status.QUEUED


def test_without_four_eyes_the_starter_may(tmp_path: Path, ben: User) -> None:
    run, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 1}"), actor=acting(ben))
    assert detail(key, acting(ben))["may"]["approve"] is True
    decide(key, approved=True, actor=acting(ben))
    assert newest(run).status == Status.QUEUED
    assert json.loads(AuditEntry.objects.get().policy)["rule"] == "holds approvals.decide; started the run as well"


def test_the_starters_vote_does_not_count_towards_a_quorum(tmp_path: Path, ben: User, people: People) -> None:
    run = begin(a_sign(tmp_path, "approvers: {quorum: 2, four_eyes: true}"), actor=acting(ben))
    work()
    key = key_of(run)
    decide(key, approved=True, actor=acting(people.approver))
    with pytest.raises(NotAllowed, match="four eyes"):
        decide(key, approved=True, actor=acting(ben))
    decide(key, approved=True, actor=acting(member("chitra")))
    assert newest(run).status == Status.QUEUED
