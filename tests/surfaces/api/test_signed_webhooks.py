"""A webhook with a secret of its own: the signature says who may, and nothing else does (scenarios 44, 45, 51)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.test import Client
from django.test.utils import override_settings

from statestore.jsontext import loads
from tests.conftest import Clock, People
from tests.hooks import SIGNED, VARIABLE, hooked
from tests.signing import SECRET, github, standard
from tests.surfaces.api.conftest import Caller, Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import ASKING, write_spec
from workflows.api.bodylimit import LIMIT
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db
URL = "/webhook/clerk"
BODY = b'{"id": 7}'
SENDER = Caller()


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def spec(folder: Path) -> SpecFile:
    return hooked(folder, SIGNED)


def send(body: bytes = BODY, headers: dict[str, str] | None = None, kind: str = "application/json", **more: Any) -> Any:
    return SENDER.send(more.pop("url", URL), body, kind, headers=standard(body) if headers is None else headers, **more)


def refused(answer: Any, code: str = "not_authenticated") -> dict[str, Any]:
    body = check(answer, code)
    assert not Run.objects.exists()
    return body


@pytest.mark.parametrize("sign", [standard, github])
@pytest.mark.parametrize("url", [URL, f"{URL}/", "/webhook", "/webhook/", f"{URL}?from=there"])
def test_a_signed_request_starts_a_run_that_no_user_started(sign: Any, url: str, spec: SpecFile) -> None:
    answer = send(headers=sign(BODY), url=url)
    assert answer.status_code == 201, answer.content
    run = Run.objects.get()
    assert answer.json()["id"] == str(run.uuid)
    assert answer.json()["state"] == {"status": "running", "trace": []}
    assert (run.surface, run.started_by, run.started_by_user_id) == ("webhook", "webhook of clerk", None)
    assert run.input == '{"id":7}'


def test_what_signs_is_not_passed_on(spec: SpecFile) -> None:
    assert send(headers=standard(BODY) | github(BODY)).status_code == 201
    headers = loads(Run.objects.get().trigger)["headers"]
    assert headers["webhook-id"] == "msg_1"
    assert not [name for name in headers if "signature" in name]


def test_a_token_or_a_session_is_not_enough_and_does_not_help(
    spec: SpecFile, callers: Callers, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    refused(callers.requester.send(URL, BODY))
    wrong = standard(BODY, secret="another secret")
    refused(callers.requester.send(URL, BODY, headers=wrong))
    browser = Client()
    browser.force_login(people.requester)
    refused(browser.post(URL, BODY, content_type="application/json"))
    assert caplog.text == ""


def test_with_a_token_beside_it_the_signature_says_who_it_is(spec: SpecFile, callers: Callers) -> None:
    for caller in (callers.requester, callers.stranger, Caller(token="nobody's")):
        assert caller.send(URL, BODY, headers=standard(BODY)).status_code == 201
    assert set(Run.objects.values_list("started_by_user", flat=True)) == {None}


def test_other_verbs_and_other_routes_are_not_opened_by_a_signature(spec: SpecFile) -> None:
    for method in ("GET", "PUT", "DELETE"):
        refused(send(method=method))
    for path in ("/runs", "/webhook/nobody", "/approvals"):
        refused(send(url=path))


def test_the_answer_is_the_same_whatever_is_wrong(spec: SpecFile, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{}, standard(BODY, secret="another"), standard(BODY, away=-400), github(b"x"), {"webhook-signature": "é"}]
    answers = {refused(send(headers=headers))["error"] for headers in given}
    monkeypatch.delenv(VARIABLE)
    answers.add(refused(send())["error"])
    assert len(answers) == 1


def test_a_skewed_clock_is_one_clear_line(spec: SpecFile, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    headers = standard(BODY)
    clock.advance(600)
    with caplog.at_level(logging.INFO):
        refused(send(headers=headers))
    (record,) = [one for one in caplog.records if one.name.startswith("kampong")]
    assert "its time is -600 s away" in record.getMessage() or "its time is -601 s away" in record.getMessage()


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"b=%F0%9F%98%80&a=1+2&b=%ff&=", "application/x-www-form-urlencoded", "b=%F0%9F%98%80&a=1+2&b=%ff&="),
        (b'--y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--y--', "multipart/form-data; boundary=y", None),
        (' { "é" : "😀" }\r\n'.encode(), "application/json; charset=utf-8", '{"é":"😀"}'),
        ("é\r\n".encode(), "text/plain", "é\r\n"),
        (b"", "text/plain", ""),
        (b"<a/>", "", "<a/>"),
    ],
)
def test_the_bytes_are_signed_and_then_read(body: bytes, kind: str, expected: str | None, spec: SpecFile) -> None:
    for sign in (standard, github):
        assert send(body, sign(body), kind).status_code == 201
    for run in Run.objects.all():
        assert run.input == (body.decode() if expected is None else expected)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"\xff\xfe", "text/plain"), (b"a\x00b", "text/plain"), (b'{"a": "\xff"}', "application/json")]
    + [(body, "application/json") for body in (b"", b"{", b"[" * 100_000, b'{"a": NaN}', b'"\\ud800"')],
)
def test_signed_bytes_that_are_no_good_are_bad_input_and_no_bad_signature(
    body: bytes, kind: str, spec: SpecFile, caplog: pytest.LogCaptureFixture
) -> None:
    refused(send(body, kind=kind), "invalid")
    refused(send(body, standard(body, secret="another"), kind))
    assert "Traceback" not in caplog.text


def test_a_body_over_the_limit(spec: SpecFile, callers: Callers) -> None:
    refused(send(b"x" * (LIMIT + 1), kind="text/plain"), "too_large")
    refused(send(b"x" * (LIMIT + 1), {}, "text/plain"))
    assert send(b"x" * LIMIT, kind="text/plain").status_code == 201


@pytest.mark.django_db(transaction=True)
def test_a_header_that_is_given_twice(server: str, spec: SpecFile) -> None:
    headers = standard(BODY)
    with httpx2.Client() as client:
        for name, text in headers.items():
            for other in (text, "v1,AAAA", ""):
                twice = [*headers.items(), (name, other)]
                answer = client.post(server + URL, content=BODY, headers=twice)
                assert answer.status_code == 401, (name, other)
        twice = [*github(BODY).items()] * 2
        assert client.post(server + URL, content=BODY, headers=twice).status_code == 401
        fine = {**headers, "Content-Type": "application/json"}
        assert client.post(server + URL, content=BODY, headers=fine).status_code == 201
    assert Run.objects.count() == 1


def test_a_broken_file_has_the_sender_come_again_and_tells_no_more(spec: SpecFile, callers: Callers) -> None:
    spec.path.write_text(spec.text + "  nonsense: 1\n")
    body = refused(send(), "spec_broken")
    assert str(spec.path) not in str(body)
    refused(send(headers={}))
    assert str(spec.path) in refused(callers.requester.send(URL, BODY), "spec_broken")["error"]


class TestTheSetting:
    """Files of version 1.0 and 1.1 cannot name a secret."""

    def test_it_holds_for_the_agents_that_it_names(self, folder: Path, callers: Callers) -> None:
        write_spec(folder, ASKING)
        write_spec(folder, ASKING.replace('"1.1"', '"1.0"'), agent_id="other", name="other.yaml")
        with override_settings(KAMPONG_WEBHOOK_SECRETS={"clerk": VARIABLE}):
            refused(callers.requester.send(URL, BODY))
            refused(send(url="/webhook/other"))
            assert send().status_code == 201
            assert callers.requester.send("/webhook/other", BODY).status_code == 201
        assert callers.requester.send(URL, BODY).status_code == 201

    def test_it_is_not_read_for_a_spec_of_version_1_2(self, folder: Path, callers: Callers) -> None:
        hooked(folder)
        with override_settings(KAMPONG_WEBHOOK_SECRETS={"clerk": VARIABLE}):
            refused(send())
            assert callers.requester.send(URL, BODY).status_code == 201


def test_an_idempotency_key_of_a_sender_is_not_that_of_a_user(folder: Path, callers: Callers) -> None:
    write_spec(folder, ASKING)
    once = {"Idempotency-Key": "17"}
    callers.requester.send(URL, BODY, headers=once)
    with override_settings(KAMPONG_WEBHOOK_SECRETS={"clerk": VARIABLE}):
        first, second = (send(headers=standard(BODY) | once) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json()
    assert Run.objects.count() == 2
