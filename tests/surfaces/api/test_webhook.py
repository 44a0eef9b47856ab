"""A webhook takes whatever comes as the run's input (engine semantics 18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.test import Client

from statestore.jsontext import loads
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import ASKING, write_spec
from workflows.models import Run
from workflows.registry import SpecFile


@pytest.mark.django_db
class TestInput:
    @pytest.mark.parametrize(
        ("raw", "content_type", "expected"),
        [
            (b'{ "b": 1,\n "a": [1, 2.50, "\\u00e9"] }', "application/json", '{"b":1,"a":[1,2.5,"é"]}'),
            (b'{"a":1}', "Application/JSON; charset=utf-8", '{"a":1}'),
            (b'"just text"', "application/json", "just text"),
            (b"[]", "application/json", "[]"),
            (b"5", "application/json", "5"),
            (b"null", "application/json", "null"),
            (b'  { "a": 1 }', "text/plain", '  { "a": 1 }'),
            (b"a=1+2&b=%C3%A9", "application/x-www-form-urlencoded", "a=1+2&b=%C3%A9"),
            ("é\r\n".encode(), "text/plain; charset=utf-8", "é\r\n"),
            (b"--y\r\n\r\n", "multipart/form-data; boundary=y", "--y\r\n\r\n"),
            (b'{"a": ', "application/vnd.api+json", '{"a": '),
            (b"", "text/plain", ""),
            (b"<a/>", "", "<a/>"),
        ],
    )
    def test_the_body_becomes_the_input(
        self, raw: bytes, content_type: str, expected: str, callers: Callers, clerk: SpecFile
    ) -> None:
        response = callers.requester.send("/webhook/clerk?source=test", raw, content_type)
        assert response.status_code == 201
        assert response.json()["state"] == {"status": "running", "trace": []}
        assert Run.objects.get().input == expected

    @pytest.mark.parametrize("raw", [b"\xff\xfe", b"a\x00b"])
    def test_what_no_database_can_hold_is_refused(self, raw: bytes, callers: Callers, clerk: SpecFile) -> None:
        check(callers.requester.send("/webhook/clerk", raw, "text/plain"), "invalid")
        assert not Run.objects.exists()

    def test_a_session_can_start_one_too(self, people: Any, clerk: SpecFile) -> None:
        client = Client()
        client.force_login(people.requester)
        assert client.post("/webhook/clerk", "hello", content_type="text/plain").status_code == 201


@pytest.mark.django_db
class TestWhichAgent:
    @pytest.mark.parametrize("path", ["/webhook", "/webhook/"])
    def test_the_only_spec_needs_no_name(self, path: str, callers: Callers, clerk: SpecFile) -> None:
        assert callers.requester.post(path, {}).status_code == 201

    def test_of_two_specs_one_has_to_be_named(self, callers: Callers, clerk: SpecFile, folder: Path) -> None:
        write_spec(folder, ASKING, agent_id="other.clerk-2", name="other.yaml")
        body = check(callers.requester.post("/webhook", {}), "agent_not_found")
        assert "clerk, other.clerk-2" in body["error"]
        assert callers.requester.post("/webhook/other.clerk-2/", {}).status_code == 201

    def test_a_second_spec_that_is_broken_does_not_make_the_first_the_only_one(
        self, callers: Callers, clerk: SpecFile, folder: Path
    ) -> None:
        (folder / "broken.yaml").write_text("agent: [")
        check(callers.requester.post("/webhook", {}), "agent_not_found")
        assert callers.requester.post("/webhook/clerk", {}).status_code == 201

    def test_with_no_spec_there_is_nobody_to_work(self, callers: Callers, folder: Path) -> None:
        check(callers.requester.post("/webhook", {}), "agent_not_found")


@pytest.mark.django_db
def test_credentials_are_never_among_the_headers_of_the_trigger(callers: Callers, clerk: SpecFile) -> None:
    secret = "canary-5d1"
    callers.requester.send(
        "/webhook/clerk",
        b"{}",
        headers={
            "X-Kind": "invoice",
            "Cookie": f"sessionid={secret}",
            "X-Hub-Signature-256": secret,
            "X-Api-Key": secret,
            "X-APIKEY": secret,
            "X-Auth-Token": secret,
            "Client-Secret": secret,
            "X-Password-Hint": secret,
            "X-Credentials": secret,
        },
    )
    run = Run.objects.get()
    headers = loads(run.trigger)["headers"]
    assert headers["x-kind"] == "invoice"
    assert not any(secret in str(value) for value in Run.objects.values().get().values())
    assert callers.requester.token not in run.trigger


@pytest.mark.django_db(transaction=True)
def test_repeated_headers_are_joined_by_comma_and_blank(server: str, callers: Callers, clerk: SpecFile) -> None:
    headers = [
        (b"Authorization", f"Bearer {callers.requester.token}".encode()),
        (b"X-Part", b"one"),
        (b"x-part", b"two"),
        (b"X_Part", b"three"),
        (b"X-Name", "Jörg".encode("latin-1")),
        (b"Content-Type", b"text/plain"),
    ]
    with httpx2.Client() as client:
        response = client.post(f"{server}/webhook/clerk", content=b"hello", headers=headers)
    assert response.status_code == 201
    kept = loads(Run.objects.get().trigger)["headers"]
    assert kept["x-part"] == "one, two"
    assert kept["x-name"] == "Jörg"
    assert kept["content-type"] == "text/plain"
    assert "x_part" not in kept
