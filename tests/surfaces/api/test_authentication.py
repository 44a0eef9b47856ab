"""A session with its CSRF token, a bearer token, or HTTP Basic with the token as password."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApiToken
from approvals.tokens import create_token
from statestore.jsontext import dumps
from tests.conftest import Clock, People
from tests.surfaces.api.conftest import Caller, Callers
from tests.surfaces.api.test_errors import check
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_a_token_is_stored_hashed(callers: Callers) -> None:
    token = callers.operator.token
    assert not any(token in str(row) for row in ApiToken.objects.values())
    assert callers.operator.get("/runs").status_code == 200


@pytest.mark.parametrize("name", ["", "anything", "operator", "wörter"])
def test_the_token_is_the_password_of_http_basic_whatever_the_user_name(name: str, callers: Callers) -> None:
    response = callers.nobody.get("/runs", headers={"Authorization": basic(name, callers.operator.token)})
    assert response.status_code == 200


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_is_read_in_any_case(scheme: str, callers: Callers) -> None:
    header = {"Authorization": f"{scheme} {callers.operator.token}"}
    assert callers.nobody.get("/runs", headers=header).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer " + "0" * 64,
        "Bearer é",
        "Bearer a b c",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"user:").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        basic("operator", "a long enough password"),
        "Token abc",
        "Digest x",
        "x" * 10_000,
    ],
)
def test_a_wrong_token_is_refused_even_beside_a_good_session(header: str, people: People) -> None:
    client = Client()
    client.force_login(people.operator)
    check(client.get("/runs", headers={"Authorization": header}), "not_authenticated")


def test_one_changed_character_of_a_token_is_a_wrong_token(callers: Callers) -> None:
    token = callers.operator.token
    for altered in (token[:-1], token + "0", token.upper(), ("1" if token[0] == "0" else "0") + token[1:]):
        check(Caller(token=altered).get("/runs"), "not_authenticated")


def test_the_token_of_a_deactivated_user_is_no_token(callers: Callers, people: People) -> None:
    User.objects.filter(pk=people.operator.pk).update(is_active=False)
    check(callers.operator.get("/runs"), "not_authenticated")


def test_the_session_of_a_deactivated_user_is_no_session(people: People) -> None:
    client = Client()
    client.force_login(people.operator)
    assert client.get("/runs").status_code == 200
    User.objects.filter(pk=people.operator.pk).update(is_active=False)
    check(client.get("/runs"), "not_authenticated")


def test_a_deleted_token_is_no_token(callers: Callers) -> None:
    ApiToken.objects.all().delete()
    check(callers.operator.get("/runs"), "not_authenticated")


def test_a_token_ends_with_its_time(people: People, clock: Clock) -> None:
    _, token = ApiToken.objects.create(user=people.operator, expiry=timedelta(seconds=60))
    assert Caller(token=token).get("/runs").status_code == 200
    clock.advance(61)
    check(Caller(token=token).get("/runs"), "not_authenticated")


def test_a_session_needs_the_csrf_token_to_change_something(people: People, clerk: SpecFile) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.requester)
    body = dumps({"agent": "clerk", "input": ""})
    refused = client.post("/runs", body, content_type="application/json")
    assert "CSRF" in check(refused, "not_allowed")["error"]
    assert not Run.objects.exists()
    client.cookies["csrftoken"] = "a" * 32
    passed = client.post("/runs", body, content_type="application/json", headers={"X-CSRFToken": "a" * 32})
    assert passed.status_code == 201
    assert client.get("/runs").status_code in (200, 403)


def test_a_foreign_page_cannot_use_a_session(people: People, clerk: SpecFile) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.requester)
    client.cookies["csrftoken"] = "a" * 32
    for origin in ("https://evil.example", "null"):
        response = client.post(
            "/runs",
            dumps({"agent": "clerk", "input": ""}),
            content_type="application/json",
            headers={"X-CSRFToken": "a" * 32, "Origin": origin},
        )
        check(response, "not_allowed")
    assert not Run.objects.exists()


def test_a_token_needs_no_csrf_token(people: People, clerk: SpecFile) -> None:
    token = create_token(people.requester)
    client = Client(enforce_csrf_checks=True)
    response = client.post(
        "/runs",
        dumps({"agent": "clerk", "input": ""}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}", "Origin": "https://elsewhere.example"},
    )
    assert response.status_code == 201


def test_the_run_knows_who_started_it(callers: Callers, people: People, clerk: SpecFile) -> None:
    callers.requester.post("/runs", {"agent": "clerk", "input": ""})
    callers.requester.send("/webhook/clerk", b"{}")
    assert list(Run.objects.order_by("id").values_list("started_by", "started_by_user_id", "surface")) == [
        ("requester", people.requester.pk, "api"),
        ("requester", people.requester.pk, "webhook"),
    ]
