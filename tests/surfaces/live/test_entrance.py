"""Who is let into the socket, and for how long (scenarios 39 and 55)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from approvals.live.watching import GOING_AWAY, tailer
from approvals.models import ApiToken
from tests.conftest import People
from tests.surfaces.api.conftest import Callers, until
from tests.surfaces.live.conftest import cookie_of, refused, socket
from tests.workbench import to_pause
from workflows.draining import draining
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nobody_watches() -> Iterator[None]:
    yield
    until(lambda: tailer.watchers == 0)


def test_a_page_of_another_site_is_refused_with_the_cookie_of_somebody_who_may(server: str, people: People) -> None:
    cookie = cookie_of(people.approver)
    port = urlsplit(server).port
    for origin in (
        "https://evil.example",
        "null",
        "http://127.0.0.1",
        f"http://127.0.0.1:{(port or 0) + 1}",
        f"http://127.0.0.1:{port}.evil.example",
        f"ftp://127.0.0.1:{port}",
        "http://[",
        "",
    ):
        assert refused(server, headers=cookie, origin=origin) == 403, origin
    assert refused(server, headers=cookie, origin=None) == 403, "no browser asks without an origin"
    trusted = "https://desk.example"
    with override_settings(CSRF_TRUSTED_ORIGINS=[trusted]), socket(server, headers=cookie, origin=trusted) as opened:
        assert opened.next()["type"] == "snapshot"
    assert refused(server, headers=cookie | {"Host": "evil.example"}, origin="http://evil.example") == 403


def test_a_token_needs_no_origin(server: str, callers: Callers) -> None:
    with socket(server, headers=callers.approver.headers) as opened:
        assert opened.next()["waiting"] == 0
    assert refused(server, headers={"Authorization": "Bearer wrong"}) == 403
    assert refused(server, headers={"Authorization": ""}) == 403
    assert refused(server, headers=callers.approver.headers, origin="https://evil.example") == 403


def test_nobody_and_whoever_may_not_see_requests_are_refused(server: str, people: People, callers: Callers) -> None:
    assert refused(server, headers={}, origin=server) == 403
    assert refused(server, headers={"Cookie": "sessionid=made-up"}, origin=server) == 403
    assert refused(server, headers=cookie_of(people.stranger), origin=server) == 403
    assert refused(server, headers=callers.requester.headers) == 403
    for user in (people.operator, people.approver):
        with socket(server, headers=cookie_of(user), origin=server) as opened:
            assert opened.next()["waiting"] == 0


def test_there_is_no_other_socket(server: str, people: People) -> None:
    for path in ("/ws/approvals/x", "/ws", "/ws/runs/1", "/"):
        with pytest.raises(InvalidStatus) as error:
            connect(server.replace("http", "ws", 1) + path, additional_headers=cookie_of(people.approver), proxy=None)
        assert error.value.response.status_code == 403


@pytest.mark.parametrize("change", ["deactivated", "permission", "token"])
def test_whoever_may_not_any_more_gets_no_further_event(
    change: str, server: str, people: People, callers: Callers, clerk: SpecFile
) -> None:
    headers = callers.approver.headers if change == "token" else cookie_of(people.approver)
    with socket(server, headers=headers, origin=server) as opened:
        opened.next()
        if change == "deactivated":
            User.objects.filter(pk=people.approver.pk).update(is_active=False)
        elif change == "permission":
            people.approver.user_permissions.clear()
        else:
            ApiToken.objects.filter(user=people.approver).delete()
        to_pause(clerk)
        assert opened.closed() == 4403


def test_it_is_closed_also_when_nothing_happens(server: str, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.live.watching.RECHECK_SECONDS", 0.1)
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        opened.next()
        User.objects.filter(pk=people.approver.pk).update(is_active=False)
        assert opened.closed() == 4403


def test_somebody_who_signs_out_elsewhere_is_refused_the_next_time(server: str, people: People) -> None:
    browser = Client()
    browser.force_login(people.approver)
    cookie = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    with socket(server, headers=cookie, origin=server) as opened:
        opened.next()
    browser.post("/admin/logout/")
    assert refused(server, headers=cookie, origin=server) == 403


def test_what_a_watcher_sends_is_not_read(server: str, people: People, clerk: SpecFile) -> None:
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        opened.next()
        for text in ("[]", '{"subscribe": "everything"}', "x" * 10_000, b"\x00\xff"):
            opened.connection.send(text)
        to_pause(clerk)
        assert opened.next()["number"] == 1


def test_a_server_that_goes_away_says_so(server: str, people: People) -> None:
    with socket(server, headers=cookie_of(people.approver), origin=server) as opened:
        opened.next()
        draining.set()
        assert opened.closed() == GOING_AWAY
