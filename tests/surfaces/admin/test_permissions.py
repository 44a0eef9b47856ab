"""Who sees and does what: asked before anything is looked up, and the same answer for what there is and is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest
from tests.conftest import People, allow
from tests.surfaces.admin.conftest import QUEUE, RUNS, decide_url, run_url
from workflows.models import Run, Status

SignedIn = Callable[[User], Client]
Waiting = tuple[Run, str]
PEOPLE = ("approver", "operator", "requester", "stranger")

pytestmark = pytest.mark.django_db(transaction=True)


def _statuses(people: People, ask: Callable[[User], int]) -> dict[str, int]:
    return {name: ask(getattr(people, name)) for name in PEOPLE}


def test_only_those_who_may_see_or_decide_requests_open_the_queue_and_a_request(
    people: People, signed_in: SignedIn, waiting: Waiting
) -> None:
    allowed = {"approver": 200, "operator": 200, "requester": 403, "stranger": 403}
    for address in (QUEUE, decide_url(waiting[1])):
        assert _statuses(people, lambda user, at=address: signed_in(user).get(at).status_code) == allowed, address  # type: ignore[misc]


def test_a_person_who_may_only_decide_sees_the_queue_too(people: People, signed_in: SignedIn, waiting: Waiting) -> None:
    decider = allow(people.stranger, "approvals.decide")
    assert signed_in(decider).get(QUEUE).status_code == 200
    answer = signed_in(decider).post(decide_url(waiting[1]), {"verdict": "reject", "digest": _digest(waiting)})
    assert (answer.status_code, answer.headers["Location"]) == (302, QUEUE)


def _digest(waiting: Waiting) -> str:
    return ApprovalRequest.objects.get(key=waiting[1]).digest


def test_only_holders_of_the_permission_decide_and_the_buttons_say_the_same(
    people: People, signed_in: SignedIn, waiting: Waiting
) -> None:
    address = decide_url(waiting[1])
    for name in ("operator", "requester", "stranger"):
        person = signed_in(getattr(people, name))
        answer = person.post(address, {"verdict": "approve", "digest": _digest(waiting)})
        assert answer.status_code == 403, name
    waiting[0].refresh_from_db()
    assert waiting[0].status == Status.AWAITING
    reading = signed_in(people.operator).get(address).content.decode()
    assert 'name="verdict"' not in reading
    assert "the permission approvals.decide is needed" in reading
    assert 'name="verdict" value="approve"' in signed_in(people.approver).get(address).content.decode()


def test_the_list_offers_no_act_to_those_who_may_not_act(people: People, signed_in: SignedIn, waiting: Waiting) -> None:
    assert 'name="act"' not in signed_in(people.operator).get(QUEUE).content.decode()
    assert 'name="act" value="approve"' in signed_in(people.approver).get(QUEUE).content.decode()
    assert 'name="act"' not in signed_in(people.approver).get(RUNS).content.decode()
    assert 'name="act" value="cancel"' in signed_in(people.operator).get(RUNS).content.decode()


def test_bulk_by_hand_is_refused_without_the_permission(people: People, signed_in: SignedIn, waiting: Waiting) -> None:
    request = ApprovalRequest.objects.get(key=waiting[1])
    fields = {"act": "approve", "pick": request.pk, "confirmed": "yes", f"digest-{request.pk}": request.digest}
    for name in ("operator", "requester", "stranger"):
        assert signed_in(getattr(people, name)).post(f"{QUEUE}bulk/", fields).status_code == 403, name
    waiting[0].refresh_from_db()
    assert waiting[0].status == Status.AWAITING


def test_only_operators_act_on_runs(people: People, signed_in: SignedIn, waiting: Waiting) -> None:
    run, _ = waiting
    act = f"{RUNS}{run.pk}/act/cancel/"
    for name in ("approver", "requester", "stranger"):
        person = signed_in(getattr(people, name))
        assert person.get(act).status_code == 403, name
        assert person.post(act, {"reason": "x"}).status_code == 403, name
        bulk = {"act": "cancel", "pick": run.pk, "confirmed": "yes"}
        assert person.post(f"{RUNS}bulk/", bulk).status_code == 403, name
    run.refresh_from_db()
    assert run.status == Status.AWAITING


def test_runs_are_for_those_who_may_see_them(people: People, signed_in: SignedIn, waiting: Waiting) -> None:
    allowed = {"approver": 200, "operator": 200, "requester": 200, "stranger": 403}
    for address in (RUNS, run_url(waiting[0])):
        assert _statuses(people, lambda user, at=address: signed_in(user).get(at).status_code) == allowed, address  # type: ignore[misc]


def test_a_stranger_cannot_tell_a_request_that_exists_from_one_that_does_not(
    people: People, signed_in: SignedIn, waiting: Waiting
) -> None:
    stranger = signed_in(people.stranger)
    real, invented = decide_url(waiting[1]), f"{QUEUE}99999999/decide/"
    pages = []
    for address in (real, invented):
        got = stranger.get(address)
        posted = stranger.post(address, {"verdict": "approve", "digest": "x"})
        pages.append((got.status_code, got.content, posted.status_code, posted.content))
    assert pages[0] == pages[1]
    assert pages[0][0] == pages[0][2] == 403
    assert signed_in(people.approver).get(invented).status_code == 404


def test_the_first_page_counts_what_waits_only_for_those_who_may_see_it(
    people: People, signed_in: SignedIn, waiting: Waiting
) -> None:
    card = "waits for a decision"
    assert card in signed_in(people.approver).get("/admin/").content.decode().replace("\n", " ")
    stranger = signed_in(people.stranger).get("/admin/").content.decode()
    assert card not in stranger
    assert "Approval requests" not in stranger


def test_nobody_signed_in_is_sent_to_sign_in(client: Client, waiting: Waiting) -> None:
    for address in (QUEUE, decide_url(waiting[1]), RUNS, run_url(waiting[0])):
        answer = client.post(address, {"verdict": "approve"})
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (302, "/admin/login/")


def test_a_form_of_another_site_decides_nothing(people: People, waiting: Waiting) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people.approver)
    answer = browser.post(decide_url(waiting[1]), {"verdict": "approve", "digest": _digest(waiting)})
    assert answer.status_code == 403
    assert "This form is too old, or came from another site" in answer.content.decode()
    waiting[0].refresh_from_db()
    assert waiting[0].status == Status.AWAITING


def test_a_login_whose_next_leads_away_lands_in_the_admin(people: People) -> None:
    words = {"username": "approver", "password": people.password}
    answer = Client().post("/admin/login/?next=//elsewhere.example/", {**words, "next": "//elsewhere.example/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
