"""One attempt of an HTTP tool against a real server: what is sent, what limits it, what its failures say."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes_tools import FakeTools
from workflows.adapters.evaluator import Evaluator
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput

SECRET = "hum ming/bird+7"


class LeaseOver(Exception):
    """What a driver's check raises."""


@pytest.fixture(scope="module")
def http(evaluator: Evaluator) -> HttpTool:
    return HttpTool(Sender(timeout=30, private_addresses=["*"]), evaluator=evaluator)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools() as server:
        yield server


def request(url: str, **changes: Any) -> HttpCall:
    fields: dict[str, Any] = {"tool": "lookup", "method": "GET", "url": url, "headers": (), "body": None}
    return HttpCall(**{**fields, **changes})


def run(http: HttpTool, call: HttpCall) -> ToolOutput | ToolFailed:
    return http.call(call, deadline_check=lambda: None)


def failed(http: HttpTool, call: HttpCall) -> ToolFailed:
    outcome = run(http, call)
    assert isinstance(outcome, ToolFailed), outcome
    return outcome


def test_it_sends_exactly_what_was_built(http: HttpTool, tools: FakeTools) -> None:
    tools.script["POST /a/b"] = {"json": {"ok": True}}
    headers = (("X-Second", "2"), ("content-type", "application/json"), ("X-first", "é"), ("X-Second", "again"))
    call = request(f"{tools.url}/a/b?q=1&q=2+3#part", method="POST", headers=headers, body='{"é":1}'.encode())
    assert run(http, call) == ToolOutput(value={"ok": True})
    (seen,) = tools.requests
    assert seen.url == f"{tools.url}/a/b?q=1&q=2+3"
    assert seen.body == '{"é":1}'.encode()
    ours = [name for name, _ in headers]
    assert [name for name, _ in seen.headers if name in ours] == ours
    extra = {name.lower() for name, _ in seen.headers} - {name.lower() for name in ours}
    assert extra == {"host", "content-length", "user-agent"}


def test_a_call_without_a_body_sends_none(http: HttpTool, tools: FakeTools) -> None:
    tools.script |= {"GET /": {"json": 1}, "POST /": {"json": 2}, "DELETE /": {"json": 3}}
    for method in ("GET", "POST", "DELETE"):
        run(http, request(tools.url + "/", method=method))
    assert [(seen.method, seen.body) for seen in tools.requests] == [("GET", b""), ("POST", b""), ("DELETE", b"")]
    assert [seen.header("content-type") for seen in tools.requests] == [None, None, None]


def test_the_modes_read_json_text_and_bytes(http: HttpTool, tools: FakeTools) -> None:
    tools.script |= {"GET /j": {"json": {"n": [3.0]}}, "GET /t": {"text": "é"}, "GET /b": {"base64": "AP8="}}
    assert run(http, request(f"{tools.url}/j", extract="n.0")) == ToolOutput(value=3)
    assert run(http, request(f"{tools.url}/t", mode="text")) == ToolOutput(value="é")
    assert run(http, request(f"{tools.url}/b", mode="bytes")) == ToolOutput(value="AP8=")


def test_packed_answers_are_unpacked(http: HttpTool, tools: FakeTools) -> None:
    packed = b64encode(gzip.compress(b'{"a": 1}')).decode()
    tools.script["GET /z"] = {"base64": packed, "headers": {"Content-Encoding": "gzip"}}
    assert run(http, request(f"{tools.url}/z")) == ToolOutput(value={"a": 1})


@pytest.mark.parametrize("packed", [False, True])
def test_more_than_four_mebibytes_are_not_read(http: HttpTool, tools: FakeTools, packed: bool) -> None:
    content = b"x" * (5 * 1024 * 1024) if not packed else gzip.compress(b"x" * (300 * 1024 * 1024))
    headers = {"Content-Encoding": "gzip"} if packed else {}
    tools.script["GET /big"] = {"base64": b64encode(content).decode(), "headers": headers}
    found = failed(http, request(f"{tools.url}/big", mode="text"))
    assert "4 MiB" in found.error
    assert not found.retryable


def test_exactly_four_mebibytes_are_read(http: HttpTool, tools: FakeTools) -> None:
    tools.script["GET /full"] = {"text": "x" * (4 * 1024 * 1024)}
    outcome = run(http, request(f"{tools.url}/full", mode="text"))
    assert isinstance(outcome, ToolOutput)
    assert outcome.value == "x" * (4 * 1024 * 1024)


@pytest.mark.parametrize("answer", [{"hang": 30, "json": 1}, {"text": "x" * 1000, "drip": 0.1}])
def test_a_silent_and_a_dripping_server_meet_one_deadline(tools: FakeTools, answer: dict[str, Any]) -> None:
    tools.script["GET /slow"] = answer
    started = time.monotonic()
    found = failed(HttpTool(Sender(timeout=0.6, private_addresses=["*"])), request(f"{tools.url}/slow"))
    assert time.monotonic() - started < 15
    assert "0.6 seconds" in found.error
    assert "KAMPONG_TOOL_TIMEOUT" in found.error
    assert (found.failure, found.retryable) == ("http", True)


def test_dripping_headers_meet_the_deadline_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1000:
                    if over.wait(0.1):
                        return
                    connection.send(bytes([byte]))

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        started = time.monotonic()
        found = failed(HttpTool(Sender(timeout=0.6, private_addresses=["*"])), request(url))
        over.set()
    assert time.monotonic() - started < 15
    assert "0.6 seconds" in found.error


def test_no_answer_names_tool_address_and_cause(http: HttpTool, tools: FakeTools) -> None:
    tools.script["GET /gone"] = {"error": "gone"}
    found = failed(http, request(f"{tools.url}/gone"))
    assert '"lookup"' in found.error
    assert f"{tools.url}/gone" in found.error
    assert (found.failure, found.retryable) == ("http", True)
    assert len(tools.requests) == 1
    tools.close()
    refused = failed(http, request(f"{tools.url}/gone"))
    assert "refused" in refused.error


@pytest.mark.parametrize(
    ("status", "failure", "retryable"),
    [
        (429, "rate_limit", True),
        (401, "auth", False),
        (408, "timeout", True),
        (503, "http", True),
        (404, "http", False),
    ],
)
def test_a_refused_call_is_classed(
    http: HttpTool, tools: FakeTools, status: int, failure: str, retryable: bool
) -> None:
    tools.script["GET /s"] = {"status": status, "text": "no"}
    found = failed(http, request(f"{tools.url}/s"))
    assert (found.failure, found.retryable) == (failure, retryable)
    assert str(status) in found.error


def test_failure_rules_search_their_patterns_in_the_child(http: HttpTool, tools: FakeTools) -> None:
    tools.script["GET /f"] = {"json": {"note": "code E17: broken"}}
    rules = ({"path": "note", "matches": "E(?<code>\\d+)"},)
    assert failed(http, request(f"{tools.url}/f", failure_when=rules)).failure == "failure_when"
    quiet = ({"path": "note", "matches": "^ok$"},)
    assert isinstance(run(http, request(f"{tools.url}/f", failure_when=quiet)), ToolOutput)
    tools.script["GET /f"] = {"json": {"note": "a" * 60}}
    stuck = failed(http, request(f"{tools.url}/f", failure_when=({"path": "note", "matches": "^(a+)+!$"},)))
    assert "failure rule" in stuck.error


@pytest.mark.parametrize("spelling", [SECRET, "hum%20ming%2Fbird%2B7", "hum+ming%2Fbird%2B7"])
def test_no_failure_shows_a_secret(http: HttpTool, tools: FakeTools, spelling: str) -> None:
    tools.script["GET /p"] = [{"status": 500, "text": SECRET}, {"error": "x"}, {"text": "not json " + SECRET}]
    url = f"{tools.url}/p?key={spelling}"
    headers = (("Authorization", f"Bearer {SECRET}"),)
    for _ in range(3):
        found = failed(http, request(url, headers=headers, secrets=frozenset({SECRET})))
        assert "hum" not in found.error
        assert "[REDACTED]" in found.error


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Injected: 1", f"{SECRET}\nX", "nul\0"])
def test_a_header_with_a_line_break_is_not_sent_and_not_shown(http: HttpTool, tools: FakeTools, value: str) -> None:
    call = request(f"{tools.url}/h", headers=(("X-Token", value),), secrets=frozenset({value}))
    found = failed(http, call)
    assert (found.failure, found.retryable) == ("build", False)
    assert "X-Token" in found.error
    assert "hum" not in found.error
    assert tools.requests == []


@pytest.mark.parametrize(
    "url", ["not a url", "//host/x", "ftp://host/x", "file:///etc/passwd", "http://", "http://h:99999/"]
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(http: HttpTool, url: str) -> None:
    found = failed(http, request(url))
    assert (found.failure, found.retryable) == ("build", False)
    assert "URL" in found.error


def test_a_refused_address_names_the_setting(tools: FakeTools) -> None:
    found = failed(HttpTool(Sender(timeout=30, private_addresses=[])), request(f"{tools.url}/x"))
    assert "KAMPONG_PRIVATE_ADDRESSES" in found.error
    assert not found.retryable
    assert tools.requests == []


def test_the_lease_is_checked_right_before_the_request_and_ends_it(http: HttpTool, tools: FakeTools) -> None:
    tools.script["GET /x"] = {"json": 1}
    seen: list[int] = []
    http.call(request(f"{tools.url}/x"), deadline_check=lambda: seen.append(len(tools.requests)))
    assert seen == [0]

    def lease_is_over() -> None:
        raise LeaseOver

    with pytest.raises(LeaseOver):
        http.call(request(f"{tools.url}/x"), deadline_check=lease_is_over)
    assert len(tools.requests) == 1


def test_no_proxy_of_the_environment_is_used(http: HttpTool, tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    tools.script["GET /x"] = {"json": 1}
    http = HttpTool(Sender(timeout=30, private_addresses=["*", "fresh.example"]))
    assert run(http, request(f"{tools.url}/x")) == ToolOutput(value=1)


def test_the_limits_are_settings_unless_given(settings: Any, tools: FakeTools) -> None:
    settings.KAMPONG_TOOL_TIMEOUT = 0.3
    settings.KAMPONG_PRIVATE_ADDRESSES = ["127.0.0.1"]
    tools.script["GET /slow"] = {"hang": 30, "json": 1}
    assert "0.3 seconds" in failed(HttpTool(), request(f"{tools.url}/slow")).error


FORKING = """
import os
import django
django.setup()
from tests.fakes_tools import FakeTools
from workflows.adapters.http import HttpTool
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolOutput
tools = FakeTools({"GET /x": {"json": 1}})
call = HttpCall(tool="t", method="GET", url=tools.url + "/x", headers=(), body=None)
http = HttpTool(Sender(timeout=30, private_addresses=["*"]))
assert http.call(call, deadline_check=lambda: None) == ToolOutput(value=1)
forked = os.fork()
if forked == 0:
    for _ in range(5):
        assert http.call(call, deadline_check=lambda: None) == ToolOutput(value=1)
    os._exit(0)
for _ in range(5):
    assert http.call(call, deadline_check=lambda: None) == ToolOutput(value=1)
assert os.waitpid(forked, 0)[1] == 0
print("fine")
"""


def test_connections_are_not_carried_across_a_fork() -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=root,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "kampong.settings"},
    )
    assert done.stdout == "fine\n", done.stderr
