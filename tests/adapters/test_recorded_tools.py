"""Tool calls recorded and replayed, against a real server: keys, contents, and what is no recording."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
from base64 import b64encode
from typing import Any

import pytest

from tests.adapters.recordings import Desk, post, request
from tests.fakes_tools import FakeTools
from workflows.engine.effects import ToolFailed, ToolOutput


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Keys ------------------------------------------------------------------------------------------------------------


def test_the_key_is_made_of_tool_method_and_address(desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"json": 1}
    desk.record(request(tools.url + "/a?b=1", headers=(("X", "y"),)))
    key = sha256(f"look up::GET::{tools.url}/a?b=1")[:16]
    assert [path.name for path in desk.files()] == [f"look_up.{key}.json"]
    assert desk.replay(request(tools.url + "/a?b=1", headers=(("X", "z"),))) == ToolOutput(value=1)


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        (b'{ "b": [{"z": 1.0, "a": 2}], "a": "\\u00e9" }', '{"a":"é","b":[{"a":2,"z":1}]}'),
        (b"a=1&b=2", "a=1&b=2"),
        (b'{"not": json', '{"not": json'),
        (b" 5 ", "5"),
    ],
)
def test_a_body_is_part_of_it_in_canonical_form(sent: bytes, canonical: str, desk: Desk, tools: FakeTools) -> None:
    tools.script["POST /a"] = {"json": 1}
    desk.record(post(tools.url + "/a", sent))
    key = sha256(f"look up::POST::{tools.url}/a::{sha256(canonical)}")[:16]
    assert [path.name for path in desk.files()] == [f"look_up.{key}.json"]
    assert desk.content()["requestBody"] == canonical
    assert desk.replay(post(tools.url + "/a", canonical.encode())) == ToolOutput(value=1)


def test_an_empty_body_is_no_body(desk: Desk, tools: FakeTools) -> None:
    tools.script["POST /a"] = {"json": 1}
    desk.record(post(tools.url + "/a", b""))
    assert "requestBody" not in desk.content()
    assert desk.replay(request(tools.url + "/a", method="POST")) == ToolOutput(value=1)


def test_another_tool_method_address_or_body_misses(desk: Desk, tools: FakeTools) -> None:
    tools.script["POST /a"] = {"json": 1}
    call = post(tools.url + "/a", b"x")
    desk.record(call)
    others = [
        post(tools.url + "/a", b"y"),
        request(tools.url + "/a", method="POST"),
        post(tools.url + "/b", b"x"),
        post(tools.url + "/a", b"x", method="PUT"),
        post(tools.url + "/a", b"x", tool="look_up"),
    ]
    for other in others:
        missed = desk.replay(other)
        assert isinstance(missed, ToolFailed)
        assert f'Tool "{other.tool}": {other.method} {other.url} got no answer: ' in missed.error
        assert "there is no fixture" in missed.error
        assert str(desk.folder / "look_up.") in missed.error
        assert "Record it first with --tools record" in missed.error
        assert ("The body of the request is part of the name" in missed.error) is bool(other.body)
        assert (missed.failure, missed.retryable) == ("http", True)
    assert len(tools.requests) == 1


def test_a_service_is_recorded_under_its_own_address(desk: Desk, tools: FakeTools, settings: Any) -> None:
    settings.KAMPONG_SLACK_API_URL = tools.mounted("https://slack.com") + "/api"
    tools.script["POST /api/chat.postMessage"] = {"json": {"ok": True}}
    call = post("https://slack.com/api/chat.postMessage", b"{}", service="slack")
    assert desk.record(call) == ToolOutput(value={"ok": True})
    assert desk.content()["url"] == "https://slack.com/api/chat.postMessage"
    settings.KAMPONG_SLACK_API_URL = "http://127.0.0.1:1/api"
    assert desk.replay(call) == ToolOutput(value={"ok": True})


# Contents --------------------------------------------------------------------------------------------------------

ANSWERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"json": {"b": 1, "a": None}}, {"body": {"b": 1, "a": None}, "bodyFormat": "utf8"}),
    ({"text": "plain é"}, {"body": "plain é", "bodyRaw": "plain é", "bodyFormat": "utf8"}),
    ({"text": ""}, {"body": "", "bodyRaw": "", "bodyFormat": "utf8"}),
    ({"text": "\ufeff[1]"}, {"bodyRaw": "\ufeff[1]", "bodyFormat": "utf8"}),
    ({"base64": b64encode(b"\x89PNG\xff\x00").decode()}, {"body": None, "bodyRaw": "iVBOR/8A", "bodyFormat": "base64"}),
    ({"text": "a\x00b"}, {"body": None, "bodyFormat": "base64"}),
    ({"status": 404, "json": {"why": "gone"}}, {"status": 404, "body": {"why": "gone"}}),
    ({"status": 500, "text": "oh"}, {"status": 500, "body": "oh"}),
    ({"status": 429, "json": {}}, {"status": 429}),
    ({"status": 204}, {"status": 204, "body": ""}),
    ({"status": 304, "headers": {"ETag": "x"}}, {"status": 304}),
    ({"headers": {"Content-Type": "a/b; c=d"}, "json": 1}, {"contentType": "a/b; c=d"}),
    ({"text": "x" * 4 * 1024 * 1024}, {"bodyFormat": "utf8"}),
]


@pytest.mark.parametrize("mode", ["json", "text", "bytes"])
@pytest.mark.parametrize(("answer", "kept"), ANSWERS, ids=[str(kept)[:40] for _, kept in ANSWERS])
def test_an_answer_replays_as_it_was(
    answer: dict[str, Any], kept: dict[str, Any], mode: Any, desk: Desk, tools: FakeTools
) -> None:
    tools.script["GET /a"] = answer
    call = request(tools.url + "/a", mode=mode)
    live = desk.record(call)
    content = desk.content()
    assert {key: content[key] for key in kept} == kept
    assert {key: content[key] for key in ("toolName", "method", "url")} == {
        "toolName": "look up",
        "method": "GET",
        "url": tools.url + "/a",
    }
    assert desk.replay(call) == live
    assert desk.replay(call) == live
    assert len(tools.requests) == 1


def test_a_packed_answer_is_kept_unpacked(desk: Desk, tools: FakeTools) -> None:
    packed = b64encode(gzip.compress(b'{"a": "b"}')).decode()
    tools.script["GET /a"] = {"base64": packed, "headers": {"Content-Encoding": "gzip"}}
    call = request(tools.url + "/a")
    assert desk.record(call) == desk.replay(call) == ToolOutput(value={"a": "b"})
    assert desk.content()["bodyRaw"] == '{"a": "b"}'


def test_a_followed_redirect_is_kept_as_its_final_answer(desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"status": 302, "headers": {"Location": "/b"}}
    tools.script["GET /b"] = {"json": "there"}
    call = request(tools.url + "/a")
    assert desk.record(call) == desk.replay(call) == ToolOutput(value="there")
    assert (desk.content()["url"], desk.content()["status"]) == (tools.url + "/a", 200)


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "dropped"},
        {"status": 302, "headers": {"Location": "http://elsewhere.example/x"}},
        {"text": "x" * (4 * 1024 * 1024 + 1)},
    ],
)
def test_a_call_without_a_usable_answer_fails_in_the_same_words(
    answer: dict[str, Any], desk: Desk, tools: FakeTools
) -> None:
    tools.script["POST /a"] = answer
    call = post(tools.url + "/a", b"{}", secrets=frozenset(["b c"]))
    live = desk.record(call)
    assert isinstance(live, ToolFailed)
    assert desk.replay(call) == live
    assert desk.content()["status"] is None


def test_the_later_answer_is_kept_and_other_headers_are_not(desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = [{"json": 1}, {"status": 503, "headers": {"Retry-After": "7"}}]
    call = request(tools.url + "/a")
    desk.record(call)
    live, replayed = desk.record(call), desk.replay(call)
    assert isinstance(live, ToolFailed)
    assert isinstance(replayed, ToolFailed)
    assert (live.retry_after, replayed.retry_after) == ("7", None)
    assert (replayed.error, replayed.failure, replayed.retryable) == (live.error, live.failure, live.retryable)


def test_without_bodyraw_the_body_is_the_answer(desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"json": 1}
    call = request(tools.url + "/a")
    desk.record(call)
    content = desk.content()
    del content["bodyRaw"], content["bodyFormat"]
    desk.files()[0].write_text(json.dumps({**content, "body": {"by": "hand"}}))
    assert desk.replay(call) == ToolOutput(value={"by": "hand"})


@pytest.mark.parametrize("status", [204, 205, 304])
def test_these_statuses_replay_without_a_body(status: int, desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"json": 1}
    call = request(tools.url + "/a", mode="text")
    desk.record(call)
    desk.files()[0].write_text(json.dumps({"status": status, "bodyRaw": "x", "bodyFormat": "utf8"}))
    replayed = desk.replay(call)
    if status == 304:
        assert isinstance(replayed, ToolFailed)
        assert "304 Not Modified" in replayed.error
    else:
        assert replayed == ToolOutput(value="")


def test_a_servers_own_words_for_a_status_are_kept(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 404 No b c Here\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        server = threading.Thread(target=serve)
        server.start()
        call = request(f"http://127.0.0.1:{listener.getsockname()[1]}/a", secrets=frozenset(["b c"]))
        live = desk.record(call)
        server.join(30)
    assert isinstance(live, ToolFailed)
    assert "404 No [REDACTED] Here" in live.error
    assert desk.content()["statusText"] == "No [REDACTED] Here"
    assert desk.replay(call) == live


BROKEN: list[dict[str, Any]] = [
    {},
    {"status": "200", "body": 1},
    {"status": True, "body": 1},
    {"status": 99, "body": 1},
    {"status": None, "body": 1},
    {"status": 200},
    {"status": 200, "bodyRaw": 5},
    {"status": 200, "bodyRaw": "x", "bodyFormat": "base64"},
    {"status": 200, "bodyRaw": "é", "bodyFormat": "base64"},
    {"status": 200, "bodyRaw": "x", "bodyFormat": "rot13"},
    {"status": 200, "bodyRaw": "x", "contentType": 5},
    {"status": 200, "bodyRaw": "x", "statusText": []},
    {"failed": {}},
    {"failed": {"error": "x", "failure": [], "retryable": True}},
    {"failed": {"error": "x", "failure": "http", "retryable": "no"}},
]


@pytest.mark.parametrize("content", [*map(json.dumps, BROKEN), "", "{", "[]", "\ufeff"])
def test_a_broken_fixture_fails_the_call_and_is_named(content: str, desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"json": 1}
    call = request(tools.url + "/a")
    desk.record(call)
    desk.files()[0].write_text(content)
    failed = desk.replay(call)
    assert isinstance(failed, ToolFailed)
    assert f'Tool "look up": GET {call.url} cannot be replayed: the fixture {desk.files()[0]} is broken' in failed.error
    assert failed.error.endswith(". Record it again.")
    assert not failed.retryable


def test_an_answer_that_cannot_be_kept_fails_the_call(desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"json": 1}
    desk.folder.write_text("a file")
    failed = desk.record(request(tools.url + "/a"))
    assert isinstance(failed, ToolFailed)
    assert "was made, but not recorded: the fixture" in failed.error
