"""While I am away: one's own absences on a page of the admin, for people who may decide."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals.absences import set_absence
from approvals.models import Absence, AuditEntry
from statestore.clock import now
from tests.approvals.policies import member
from tests.conftest import People
from tests.workbench import acting

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/admin/approvals/absence/"
SignedIn = Callable[[User], Client]


def local(hours: float) -> str:
    """So many hours from now, as the browser's field sends it."""
    return timezone.localtime(now() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")


def asked(substitute: str = "dev", starts: float = -1, ends: float = 24, **more: str) -> dict[str, str]:
    return {"substitute": substitute, "starts_at": local(starts), "ends_at": local(ends)} | more


@pytest.fixture
def dev(db: None) -> User:
    return member("dev")


def test_only_people_who_may_decide_open_it(people: People, signed_in: SignedIn) -> None:
    for user, status in ((people.approver, 200), (people.operator, 403), (people.requester, 403)):
        browser = signed_in(user)
        assert browser.get(PAGE).status_code == status
        assert ("/admin/approvals/absence/" in browser.get("/admin/").content.decode()) is (status == 200)
        assert (browser.post(PAGE, asked("approver")).status_code == 403) is (status == 403)
    assert not Absence.objects.exists()


def test_add_one_see_it_and_end_it(people: People, signed_in: SignedIn, dev: User) -> None:
    browser, other = signed_in(people.approver), signed_in(dev)
    assert "Nobody stands in." in browser.get(PAGE).content.decode()
    answer = browser.post(PAGE, asked())
    assert (answer.status_code, answer.headers["Location"]) == (302, PAGE)
    absence = Absence.objects.get()
    assert (absence.user, absence.substitute) == (people.approver, dev)
    shown = browser.get(PAGE).content.decode()
    assert "dev decides meanwhile" in shown
    assert "End now" in shown
    assert "for approver" in other.get(PAGE).content.decode()
    end = f"{PAGE}{absence.pk}/end/"
    assert browser.get(end).status_code == 405
    assert other.post(end).status_code == 403
    assert browser.post(end).status_code == 302
    assert "Nobody stands in." in browser.get(PAGE).content.decode()
    assert "over already" in browser.post(end, follow=True).content.decode()
    entries = AuditEntry.objects.order_by("id").values_list("act", "actor", "surface")
    assert list(entries) == [("away", "approver", "admin"), ("back", "approver", "admin")]


def test_what_is_wrong_is_said_at_its_field_and_stays_typed(people: People, signed_in: SignedIn, dev: User) -> None:
    browser = signed_in(people.approver)
    cases = (
        (asked("requester"), "This user does not hold approvals.decide"),
        (asked("nobody-here"), "There is no active user of this name."),
        (asked("approver"), "Somebody else has to stand in."),
        (asked(starts=2, ends=1), "The end must come after the beginning."),
        (asked() | {"ends_at": "tomorrow"}, "Enter a valid date/time."),
        (asked(user="dev"), ""),
    )
    for data, words in cases[:-1]:
        answer = browser.post(PAGE, data)
        text = answer.content.decode()
        assert answer.status_code == 400, text
        assert words in text
        assert f'value="{data["substitute"]}"' in text
    assert not Absence.objects.exists()
    # A field that is not there for them is not read.
    browser.post(PAGE, cases[-1][0])
    assert Absence.objects.get().user == people.approver
    assert "There is an absence already, with dev from" in browser.post(PAGE, asked()).content.decode()


def test_a_superuser_does_it_for_somebody_else(people: People, signed_in: SignedIn, dev: User) -> None:
    root = member("root", superuser=True)
    browser = signed_in(root)
    assert browser.post(PAGE, asked(user="approver")).status_code == 302
    absence = Absence.objects.get()
    assert absence.user == people.approver
    assert "approver" in browser.get(PAGE).content.decode()
    assert browser.post(f"{PAGE}{absence.pk}/end/").status_code == 302
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"root"}


def test_the_audit_shows_an_entry_that_belongs_to_no_run(people: People, signed_in: SignedIn, dev: User) -> None:
    moment = now()
    set_absence(acting(dev, "admin"), substitute="approver", starts_at=moment, ends_at=moment + timedelta(days=1))
    browser = signed_in(member("root", superuser=True))
    assert "away by dev" in browser.get("/admin/approvals/auditentry/?act=away").content.decode()
    entry = AuditEntry.objects.get()
    assert browser.get(f"/admin/approvals/auditentry/{entry.pk}/change/").status_code == 200
