"""The pages of a run whose content was removed: they say so, and every one of them opens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from statestore.clock import now
from tests.conftest import Clock, People, allow
from tests.surfaces.admin.conftest import RUNS, decide_url, run_url
from tests.workbench import acting
from workflows.models import Run, Status
from workflows.retention.pruning import prune, prune_decisions
from workflows.runs import newest

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * 3600


def allowed_both(people: People) -> User:
    people.operator.user_permissions.add(*people.approver.user_permissions.all())
    return allow(people.operator, "approvals.view_auditentry")


def test_every_page_says_so_until_the_decision_goes_too(
    waiting: tuple[Run, str], people: People, signed_in: SignedIn, clock: Clock, settings: Settings
) -> None:
    run, key = waiting
    settings.KAMPONG_KEEP_REJECTED = "90d"
    decide(key, approved=False, reason="not this one", actor=acting(people.approver))
    browser = signed_in(allowed_both(people))
    last = newest(run)
    assert "What it read and made was removed" not in browser.get(run_url(last)).content.decode()
    clock.advance(91 * DAY)
    assert prune() == 1
    entry = AuditEntry.objects.get()
    pages = [run_url(run), run_url(last)]
    for page in pages:
        shown = browser.get(page)
        assert shown.status_code == 200
        assert "What it read and made was removed on 20" in shown.content.decode()
        assert "not this one" in shown.content.decode(), "the decision is still told"
    audit_page = reverse("admin:approvals_auditentry_change", args=[entry.pk])
    request_page = decide_url(key)
    for page in (RUNS, request_page, audit_page):
        assert browser.get(page).status_code == 200
    settings.KAMPONG_KEEP_DECISIONS = "1d"
    assert prune_decisions() == 1
    assert browser.get(audit_page).status_code == 200
    assert [browser.get(page).status_code for page in (*pages, request_page)] == [404, 404, 404]
    assert AuditEntry.objects.get() == entry


def test_no_act_is_drawn_and_one_that_is_posted_is_refused(
    waiting: tuple[Run, str], people: People, signed_in: SignedIn, clock: Clock, settings: Settings
) -> None:
    run, _ = waiting
    settings.KAMPONG_KEEP_FAILED = "90d"
    Run.objects.filter(pk=run.pk).update(status=Status.FAILED, error="it broke", ended_at=now())
    ApprovalRequest.objects.update(status="cancelled", closed_at=now())
    browser = signed_in(allowed_both(people))
    retry = reverse("admin:workflows_run_act", args=[run.pk, "retry"])
    assert retry in browser.get(run_url(run)).content.decode()
    clock.advance(91 * DAY)
    assert prune() == 1
    page = browser.get(run_url(run)).content.decode()
    assert retry not in page
    assert "Retry goes on" not in page
    refused = browser.post(retry, {"reason": "again"})
    assert refused.status_code == 409
    assert "what it read and made was removed" in refused.content.decode()
    assert Run.objects.get().status == Status.FAILED
