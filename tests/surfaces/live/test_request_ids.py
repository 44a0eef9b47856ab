"""Each request has an id: over HTTP and on websockets, whatever comes of it."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest

from kampong import wsgi
from kampong.requestids import RequestIdsWsgi
from tests.conftest import People
from tests.metering import logged
from tests.surfaces.api.conftest import Callers
from tests.surfaces.live.conftest import cookie_of, socket
from workflows.bound import ids
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

FRESH = re.compile(r"[0-9a-f]{32}")


def test_a_sane_id_is_taken_and_any_other_replaced(server: str) -> None:
    sane = ["7", "a" * 128, "Root=1-67891233-abcdef012345678912345678", "trace:9/4+x.y_z@host"]
    odd = ["", "a" * 129, "a b", "a,b", "x\tINFO run ended", '"}', "é", "[run=1]"]
    with httpx2.Client(base_url=server) as client:
        for given in sane:
            assert client.get("/healthz", headers={"X-Request-ID": given}).headers["x-request-id"] == given
        answers = [client.get("/healthz", headers={b"X-Request-ID": given.encode("latin-1")}) for given in odd]
        answers += [client.get("/healthz"), client.get("/nowhere"), client.post("/runs", content=b"x" * 2_000_000)]
        answers.append(client.get("/healthz", headers={"Host": "evil.example.org"}))
    assert [one.status_code for one in answers[len(odd) :]] == [200, 404, 401, 400]
    fresh = [one.headers["x-request-id"] for one in answers]
    assert all(FRESH.fullmatch(one) for one in fresh), fresh
    assert len(set(fresh)) == len(fresh)


def test_a_socket_has_one_too(server: str, people: People) -> None:
    headers = cookie_of(people.approver) | {"X-Request-ID": "socket-1"}
    with socket(server, headers=headers, origin=server) as opened:
        answer = opened.connection.response
        assert answer is not None
        assert answer.headers["x-request-id"] == "socket-1"


def test_a_run_that_a_request_started_names_both_ids_and_no_other_requests(
    server: str, callers: Callers, clerk: SpecFile
) -> None:
    with logged("kampong.runs") as lines, httpx2.Client(base_url=server, headers=callers.requester.headers) as client:
        started = {}
        for name in ("one", "two"):
            answer = client.post("/runs", json={"agent": "clerk", "input": ""}, headers={"X-Request-ID": name})
            started[name] = answer.json()["id"]
    assert {line["request"]: line["run"] for line in lines} == started
    assert {(line["message"], line["agent"], line["workspace"]) for line in lines} == {
        ("run started (api)", "clerk", "default")
    }


def test_without_streams_it_is_the_same() -> None:
    heard: dict[str, Any] = {}

    def app(environ: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [("X-Kind", "a")])
        return [ids()["request"].encode()]

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> None:
        heard.update(headers)

    assert RequestIdsWsgi(app)({"HTTP_X_REQUEST_ID": "sane-1"}, start) == [b"sane-1"]
    assert heard == {"X-Kind": "a", "X-Request-ID": "sane-1"}
    assert RequestIdsWsgi(app)({"HTTP_X_REQUEST_ID": "in\nsane"}, start) != [b"in\nsane"]
    assert FRESH.fullmatch(heard["X-Request-ID"])
    assert ids() == {}
    assert isinstance(wsgi.application, RequestIdsWsgi)
