"""After the end, everywhere: nothing opens again, who may ask learns who ended it, and a stranger learns nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest
from approvals.notices import sender
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import Clock, People
from tests.crash.refusing import rows
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.surfaces.everywhere.surfaces import Surface
from tests.surfaces.everywhere.test_one_policy import NO, YES, entries, stands, waiting
from tests.surfaces.slack.conftest import CHANNEL
from tests.workbench import ASKING, acting, to_pause, work, write_spec
from workflows.models import Run, Status
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

ONCE = ASKING.replace("    - {{step: second, type: approval}}\n", "").replace(
    "  workflow:", f"  approval_notifier: {CHANNEL.replace('{', '{{').replace('}', '}}')}\n  workflow:"
)
WEEK = 7 * 24 * 3600


def asked_once(folder: Path) -> tuple[Run, ApprovalRequest]:
    """A run that ends with its one approval, its card in the channel."""
    run, key = to_pause(write_spec(folder, ONCE))
    sender.send_due()
    return run, ApprovalRequest.objects.get(key=key)


def test_a_second_answer_changes_nothing_in_a_run_that_has_finished(
    surface: Surface, people: People, tmp_path: Path
) -> None:
    """Scenario 3: the same key again, with no and with yes, after the run ended."""
    run, request = asked_once(tmp_path)
    surface.press(people.approver, request, YES)
    work()
    assert newest(run).status == Status.COMPLETED
    before = rows()
    for press in (NO, YES):
        assert "approved by approver on" in surface.press(people.approver, request, press).lower()
        assert work() == 0
        assert rows() == before


def test_every_decision_is_signed_and_stays_readable_when_its_user_is_gone(
    surface: Surface, people: People, tmp_path: Path
) -> None:
    """Scenario 38: actor, surface and time, after the account was deleted too."""
    run, request = waiting(tmp_path)
    surface.press(people.approver, request, YES)
    number, reader = people.approver.pk, member("reader", superuser=True)
    User.objects.get(pk=number).delete()
    (entry,) = entries(request)
    assert (entry.actor, entry.actor_user_id, entry.surface) == ("approver", number, surface.name)
    assert entry.at >= request.created_at
    decision = with_token(reader).get(f"/approvals/{request.key}").json()["decision"]
    assert (decision["by"], decision["surface"], decision["outcome"]) == ("approver", surface.name, "approved")
    assert decision["at"].endswith("Z")
    browser = Client()
    browser.force_login(reader)
    for path in (f"approvalrequest/{request.pk}/decide/", f"auditentry/{entry.pk}/change/", "auditentry/"):
        shown = browser.get(f"/admin/approvals/{path}")
        assert shown.status_code == 200
        assert "approver" in shown.content.decode(), path
    assert browser.get(f"/admin/workflows/run/{newest(run).pk}/change/").status_code == 200
    assert "approver" in command("audit", "export").out


def test_what_nobody_decided_is_signed_as_well(people: People, tmp_path: Path, clock: Clock) -> None:
    """Scenario 38: an expiry and a cancellation."""
    run, cancelled = waiting(tmp_path)
    cancel_run(run, actor=acting(people.operator), reason="off")
    _, expired = waiting(tmp_path)
    clock.advance(WEEK + 1)
    expire_due()
    signed = [(entry.act, entry.actor, entry.surface) for one in (cancelled, expired) for entry in entries(one)]
    assert signed == [("cancel", "operator", "api"), ("expire", "expiry", "system")]


def test_a_stranger_is_told_the_same_whatever_became_of_it(
    surface: Surface, people: People, tmp_path: Path, clock: Clock
) -> None:
    """Scenario 50: used, cancelled, expired and waiting are one refusal for whoever may not decide."""
    stranger = people.stranger
    _, used = waiting(tmp_path)
    decide(str(used.key), approved=True, actor=acting(people.approver))
    run, cancelled = waiting(tmp_path)
    cancel_run(run, actor=acting(people.operator))
    _, expired = waiting(tmp_path)
    clock.advance(WEEK + 1)
    expire_due()
    run, open_still = waiting(tmp_path)
    told = {_without_names(surface.press(stranger, one, YES), one) for one in (used, cancelled, expired, open_still)}
    (same,) = told
    assert [word for word in ("approver", "operator", "expired", "cancelled by") if word in same.lower()] == []
    assert stands(run, open_still) == ("open", Status.AWAITING)


def _without_names(told: str, request: ApprovalRequest) -> str:
    """What was told, without the key and the number that the stranger brought."""
    return re.sub(rf"{request.key}|\b{request.pk}\b", "*", told)
