"""Links lead to the right host, scheme and path prefix, whoever makes them and however the site is reached."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import override_settings
from django.urls import set_script_prefix

from approvals import addresses
from approvals.addresses import NoAddress, base_url, link_to
from approvals.models import ApprovalRequest
from approvals.tokens import create_token
from kampong.prefix import Prefixed, PrefixedWsgi, bare
from tests.conftest import PASSWORD, People, Processes
from tests.surfaces.links.proxies import HOST, Outside, proxy
from tests.surfaces.serve.conftest import Served
from tests.workbench import ASKING, to_pause, write_spec

SITE = f"https://{HOST}/desk"

# an address has nothing to do with the database
pytestmark = pytest.mark.everyday("postgres")


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_listening", [])


@override_settings(KAMPONG_BASE_URL=f"{SITE}/")
def test_a_link_is_made_without_a_request_and_in_any_thread() -> None:
    made: list[str] = []
    thread = threading.Thread(target=lambda: made.append(link_to("approval", "a-key")))
    thread.start()
    thread.join()
    assert made == [f"{SITE}/approvals/a-key"]


@override_settings(KAMPONG_BASE_URL=SITE)
def test_the_prefix_stands_once_where_a_request_brought_it_as_well() -> None:
    set_script_prefix("/desk/")
    try:
        assert link_to("approval", "a-key") == f"{SITE}/approvals/a-key"
    finally:
        set_script_prefix("/")


def test_without_an_address_no_link_is_made_and_the_setting_is_named() -> None:
    with pytest.raises(NoAddress, match="KAMPONG_BASE_URL is not set"):
        link_to("approval", "a-key")
    with override_settings(KAMPONG_BASE_URL="kampong.example.org"), pytest.raises(NoAddress, match="cannot be used"):
        base_url()


def test_serve_is_the_address_until_one_is_set_but_not_in_production() -> None:
    addresses.listening_at("http://127.0.0.1:8080")
    assert link_to("approval", "k") == "http://127.0.0.1:8080/approvals/k"
    with override_settings(KAMPONG_BASE_URL=SITE):
        assert base_url() == SITE
    with override_settings(KAMPONG_PRODUCTION=True), pytest.raises(NoAddress):
        base_url()


@pytest.mark.parametrize(
    ("path", "below"),
    [("/desk/runs", "/runs"), ("/runs", "/runs"), ("/desk", "/"), ("/desk/", "/"), ("/", "/"), ("/desks", "/desks")],
)
def test_the_prefix_is_a_whole_part_of_the_path(path: str, below: str) -> None:
    assert bare(path, "/desk") == below


@pytest.mark.parametrize("path", ["/desk/runs", "/runs"])
def test_both_kinds_of_servers_see_one_path_however_the_proxy_passes_it_on(path: str) -> None:
    seen: list[Any] = []

    def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ["PATH_INFO"])
        return []

    async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append((scope["path"], scope.get("root_path")))

    PrefixedWsgi(wsgi, "/desk")({"PATH_INFO": path}, None)
    for kind in ("http", "websocket"):
        with pytest.raises(StopIteration):
            Prefixed(asgi, "/desk")({"type": kind, "path": path}, None, None).send(None)
    assert seen == ["/runs", ("/desk/runs", "/desk"), ("/desk/runs", "/desk")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cuts_off", ["", "/desk"], ids=["the prefix is passed on", "the prefix is cut off"])
def test_behind_a_tls_proxy_under_a_prefix_every_page_leads_to_pages_that_are_there(
    tmp_path: Path, manage: Processes, people: People, cuts_off: str
) -> None:
    _, key = to_pause(write_spec(tmp_path, ASKING))
    variables = {"KAMPONG_BASE_URL": SITE, "ALLOWED_HOSTS": HOST, "KAMPONG_TRUST_FORWARDED_PROTO": "1"}
    served = Served(manage.start("serve", "--port", "0", "--web-only", env=variables))
    assert any("/desk/ (admin: " in line for line in served.said)
    with proxy(served.url, cuts_off=cuts_off) as address:
        outside = Outside(address)
        assert outside.ask("GET", SITE)[0].getheader("Location") == "/desk/admin/"
        answer, _ = outside.ask("GET", "/desk/admin/")
        login = answer.getheader("Location") or ""
        assert login == "/desk/admin/login/?next=/desk/admin/"
        _sign_in(outside, login)
        answer, page = outside.ask("GET", "/desk/admin/")
        assert answer.status == 200
        _all_there(outside, page)
        with override_settings(KAMPONG_BASE_URL=SITE):
            queue, one = link_to("admin:approvals_approvalrequest_changelist"), link_to("approval", key)
        answer, page = outside.ask("GET", queue)
        assert answer.status == 200
        _all_there(outside, page)
        token = create_token(people.approver)
        answer, text = outside.ask("GET", one, Authorization=f"Bearer {token}")
        assert (answer.status, key in text) == (200, True)
        answer, page = outside.ask("GET", "/desk/admin/nothing/here/")
        assert (answer.status, 'href="/desk/admin/"' in page) == (404, True)
        _approve(outside, ApprovalRequest.objects.get(key=key))
    assert set(outside.paths.values()) == {"/desk/"}, outside.paths


def _approve(outside: Outside, request: ApprovalRequest) -> None:
    """By the form of the decision page (scenario 53)."""
    path = f"/desk/admin/approvals/approvalrequest/{request.pk}/decide/"
    answer, page = outside.ask("GET", path)
    sent = dict(re.findall(r'name="(csrfmiddlewaretoken|digest)" value="([^"]*)"', page)) | {"verdict": "approve"}
    answer, _ = outside.ask("POST", path, urlencode(sent))
    assert answer.status == 302
    request.refresh_from_db()
    assert request.status == "decided"


def _sign_in(outside: Outside, login: str) -> None:
    answer, page = outside.ask("GET", login)
    assert answer.status == 200
    _all_there(outside, page)
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found
    given = {"csrfmiddlewaretoken": found[1], "username": "approver", "password": PASSWORD, "next": "/desk/admin/"}
    answer, _ = outside.ask("POST", login, urlencode(given))
    assert (answer.status, answer.getheader("Location")) == (302, "/desk/admin/")


def _all_there(outside: Outside, page: str) -> None:
    """Every style, script, picture and link of a page answers under the prefix."""
    named = {name for name in re.findall(r"""(?:src|href|action)=["']([^"'#?]+)""", page) if name.startswith("/")}
    assert named
    for name in sorted(named):
        assert urlsplit(name).path.startswith("/desk/"), name
        if "logout" not in name:
            assert outside.ask("GET", name)[0].status in (200, 302), name
