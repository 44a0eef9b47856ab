"""Redirects: followed for GET and HEAD, through the guard, without credentials to another host (design 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes_tools import FakeTools
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput

SECRET = "hummingbird"
HEADERS = (
    ("Authorization", "Basic abc"),
    ("Cookie", "session=1"),
    ("X-Api-Key", f"key {SECRET}"),
    ("X-Plain", "plain"),
    ("Accept", "application/json"),
)


@pytest.fixture
def home() -> Iterator[FakeTools]:
    with FakeTools() as server:
        yield server


@pytest.fixture
def abroad() -> Iterator[FakeTools]:
    with FakeTools({"GET /end": {"json": "end"}}) as server:
        yield server


def to(location: str, status: int = 302) -> dict[str, Any]:
    return {"status": status, "headers": {"Location": location}}


def run(url: str, **changes: Any) -> ToolOutput | ToolFailed:
    fields: dict[str, Any] = {
        "tool": "lookup",
        "method": "GET",
        "url": url,
        "headers": HEADERS,
        "body": None,
        "secrets": frozenset({SECRET}),
    }
    http = HttpTool(Sender(timeout=30, private_addresses=["*"]))
    return http.call(HttpCall(**{**fields, **changes}), deadline_check=lambda: None)


def failed(url: str, **changes: Any) -> ToolFailed:
    outcome = run(url, **changes)
    assert isinstance(outcome, ToolFailed), outcome
    return outcome


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_get_is_followed_and_keeps_its_headers_on_the_same_host(home: FakeTools, status: int) -> None:
    home.script |= {"GET /start": to("end?x=1", status), "GET /end": {"json": "end"}}
    assert run(f"{home.url}/start") == ToolOutput(value="end")
    assert [seen.url for seen in home.requests] == [f"{home.url}/start", f"{home.url}/end?x=1"]
    last = dict(home.requests[1].headers)
    assert {name: last[name] for name, _ in HEADERS} == dict(HEADERS)


def test_credentials_stay_at_home_when_the_host_changes(home: FakeTools, abroad: FakeTools) -> None:
    home.script["GET /start"] = to(f"{abroad.url}/end")
    assert run(f"{home.url}/start") == ToolOutput(value="end")
    names = {name for name, _ in abroad.requests[0].headers}
    assert {"X-Plain", "Accept"} <= names
    assert not {"Authorization", "Cookie", "X-Api-Key"} & names
    assert SECRET not in str(abroad.requests[0])


def test_credentials_do_not_come_back_after_a_detour(home: FakeTools, abroad: FakeTools) -> None:
    home.script |= {"GET /start": to(f"{abroad.url}/turn"), "GET /back": {"json": "back"}}
    abroad.script["GET /turn"] = to(f"{home.url}/back")
    assert run(f"{home.url}/start") == ToolOutput(value="back")
    assert home.requests[1].header("authorization") is None


def test_five_redirects_are_followed_and_a_sixth_is_not(home: FakeTools) -> None:
    home.script |= {f"GET /{n}": to(f"/{n + 1}") for n in range(6)} | {"GET /5": {"json": 5}}
    assert run(f"{home.url}/0") == ToolOutput(value=5)
    home.script |= {"GET /5": to("/6"), "GET /6": {"json": 6}}
    found = failed(f"{home.url}/0")
    assert "5 redirects" in found.error
    assert f"{home.url}/6" in found.error
    assert len(home.requests) == 6 + 6


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [302, 307])
def test_another_method_fails_and_names_the_target(
    home: FakeTools, abroad: FakeTools, method: str, status: int
) -> None:
    home.script[f"{method} /start"] = to(f"{abroad.url}/end?token={SECRET}", status)
    found = failed(f"{home.url}/start", method=method, body=b"{}")
    assert str(status) in found.error
    assert f"{abroad.url}/end" in found.error
    assert SECRET not in found.error
    assert not found.retryable
    assert abroad.requests == []


def test_what_was_approved_is_not_sent_elsewhere(home: FakeTools, abroad: FakeTools) -> None:
    home.script["GET /start"] = to(f"{abroad.url}/end")
    found = failed(f"{home.url}/start", approved=True)
    assert "approved" in found.error
    assert f"{abroad.url}/end" in found.error
    assert abroad.requests == []


def test_a_secret_in_the_target_is_hidden(home: FakeTools) -> None:
    home.script["POST /start"] = to(f"https://{SECRET}.example/{SECRET}")
    found = failed(f"{home.url}/start", method="POST")
    assert SECRET not in found.error
    assert "[REDACTED].example" in found.error


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/"]
)
def test_a_redirect_goes_through_the_guard(home: FakeTools, location: str) -> None:
    home.script["GET /start"] = to(location)
    assert "KAMPONG_PRIVATE_ADDRESSES" in failed(f"{home.url}/start").error


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://x/", "http://", "http://h:99999/"])
def test_a_redirect_to_no_http_address_fails(home: FakeTools, location: str) -> None:
    home.script["GET /start"] = to(location)
    assert "redirect" in failed(f"{home.url}/start").error


def test_a_redirect_status_without_a_target_is_an_ordinary_refusal(home: FakeTools) -> None:
    home.script["GET /start"] = {"status": 304}
    assert "304" in failed(f"{home.url}/start").error


def test_the_lease_is_checked_before_every_hop(home: FakeTools) -> None:
    home.script |= {"GET /start": to("/end"), "GET /end": {"json": 1}}
    seen: list[int] = []
    call = HttpCall(tool="t", method="GET", url=f"{home.url}/start", headers=(), body=None)
    http = HttpTool(Sender(timeout=30, private_addresses=["*"]))
    http.call(call, deadline_check=lambda: seen.append(len(home.requests)))
    assert seen == [0, 1]
