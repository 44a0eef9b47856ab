"""What arrives at a server when a tool of a spec is called (engine semantics 10.4, 14.1, 14.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes_tools import FakeTools, Recorded
from workflows.advance import world_for
from workflows.engine.situation import Situation
from workflows.memory_run import State, run_in_memory
from workflows.spec.load import load

SPEC = """\
version: "{version}"
agent:
  id: clerk
  name: Clerk
  role: Clerk
  goal: Call it.
  model: {{provider: ollama, name: test-model}}
  tools:
    - name: call
      action: http_request
{tool}
  workflow:
    - {{step: one, type: tool, tool: call}}
"""
JSON_TYPE = "application/json"
#: What a value of the environment may look like; nothing in it is read again.
B = "b {{ input }} {input} ${A} $${A}"
HOSTILE = "${A} $${A} {input} {{ input }} ${5} $"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("A", "va")
    monkeypatch.setenv("B", B)
    monkeypatch.setenv("U", "ü&=")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    with FakeTools() as server:
        server.script = {f"{method} /x": {"json": {"ok": True}} for method in ("GET", "POST")}
        yield server


def run(tools: FakeTools, tool: dict[str, Any], *, version: str = "1.1", input: str = "go") -> State:
    written = "\n".join(f"      {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in tool.items())
    loaded = load(SPEC.format(version=version, tool=written))
    assert loaded.spec is not None, loaded.errors
    return run_in_memory(
        loaded.spec,
        Situation(input=input),
        world_for(loaded.spec),
        ask=lambda pause: None,
        listener=lambda event, state: None,
    )


def sent(tools: FakeTools, tool: dict[str, Any], **given: Any) -> Recorded:
    state = run(tools, tool, **given)
    assert state["status"] == "completed", state
    (request,) = tools.requests
    return request


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ("${A}${B}", "va" + B),
        ("x${A}y", "xvay"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${UNSET}", "${UNSET}"),
        ("{${A}}", "{va}"),
        ("${A}}", "va}"),
        ("$${A}${A}", "${A}va"),
        ("${}", "${}"),
        ("${1A}", "${1A}"),
        ("${A", "${A"),
        ("${ A }", "${ A }"),
        ("${a-b}", "${a-b}"),
        ("$A $ $$", "$A $ $$"),
        ("${A}{{ input }}", "va" + HOSTILE),
        ("{{ input }}${A}", HOSTILE + "va"),
        ("$${{ input }}", "$$" + HOSTILE),
    ],
)
def test_a_reference_is_read_once_and_data_never(tools: FakeTools, written: str, arrives: str, version: str) -> None:
    tool = {
        "method": "POST",
        "url": tools.url + "/x",
        "headers": {"X-A": written},
        "body": {"json": {"text": written, "in": [{"it": written}]}},
    }
    request = sent(tools, tool, version=version, input=HOSTILE)
    assert (request.header("x-a") or "").encode("latin-1").decode() == arrives
    assert request.json() == {"text": arrives, "in": [{"it": arrives}]}


@pytest.mark.parametrize("field", ["url", "headers", "query", "json", "form", "raw"])
@pytest.mark.parametrize("name", ["UNSET", "EMPTY"])
def test_an_unset_or_empty_variable_is_named_and_nothing_is_sent(tools: FakeTools, field: str, name: str) -> None:
    reference = f"${{{name}}}"
    tool: dict[str, Any] = {"method": "POST", "url": tools.url + "/x"}
    fields: dict[str, dict[str, Any]] = {
        "url": {"url": f"{tools.url}/x?k={reference}"},
        "headers": {"headers": {"X-A": reference}},
        "query": {"query": {"k": reference}},
        "json": {"body": {"json": {"deep": [reference]}}},
        "form": {"body": {"form": {"k": reference}}},
        "raw": {"body": {"raw": reference}},
    }
    state = run(tools, tool | fields[field])
    assert state["status"] == "failed"
    assert name in state["error"]
    assert tools.requests == []


@pytest.mark.parametrize(
    ("path", "query", "arrives"),
    [
        ("/x", {"a": "1 2", "b": "ü&=+~*"}, "/x?a=1+2&b=%C3%BC%26%3D%2B%7E*"),
        ("/x?", {"a": "b"}, "/x?a=b"),
        ("/x?a=1", {"a": "2"}, "/x?a=1&a=2"),
        ("/x?a=1&", {"a": "2"}, "/x?a=1&a=2"),
        ("/x#part?z", {"a": "b"}, "/x?a=b"),
        ("/x?q=1#part", {"ü k": "${U}"}, "/x?q=1&%C3%BC+k=%C3%BC%26%3D"),
        ("/x?q=a%20b%2F", {}, "/x?q=a%20b%2F"),
        ("/x", {"a": "{{ [1.0, null] }}", "b": "{{ true }}", "c": "{{ 3.0 }}"}, "/x?a=%5B1%2Cnull%5D&b=true&c=3"),
        ("/x", {"z": "1", "a": "2", "m": ""}, "/x?z=1&a=2&m="),
    ],
)
def test_parameters_are_added_in_order_before_the_fragment(
    tools: FakeTools, path: str, query: dict[str, str], arrives: str
) -> None:
    assert sent(tools, {"method": "GET", "url": tools.url + path, "query": query}).url == tools.url + arrives


@pytest.mark.parametrize(
    ("body", "content", "kind"),
    [
        (
            {"json": {"z": 3.0, "a": 1e3, "n": None, "t": True}},
            '{"z":3,"a":1000,"n":null,"t":true}',
            "application/json",
        ),
        ({"json": [12345678901234567890, 0.5, -0.0]}, "[12345678901234567890,0.5,0]", JSON_TYPE),
        ({"json": {"é": "ü\u2028"}}, '{"é":"ü\u2028"}', JSON_TYPE),
        ({"json": {"name": "{{ input }}", "token": "${A}"}}, '{"name":"go","token":"va"}', JSON_TYPE),
        ({"json": {"${A}": "{{ {'x': [1.0]} }}"}}, '{"${A}":{"x":[1]}}', JSON_TYPE),
        ({"json": {}}, "{}", JSON_TYPE),
        ({"form": {"a": "1 2", "b": "${U}"}}, "a=1+2&b=%C3%BC%26%3D", "application/x-www-form-urlencoded"),
        ({"form": {}}, "", "application/x-www-form-urlencoded"),
        ({"raw": "ü ${A}"}, "ü va", "text/plain; charset=utf-8"),
        ({"raw": ""}, "", "text/plain; charset=utf-8"),
        ({"raw": "x", "content_type": "text/csv"}, "x", "text/csv"),
        ({"raw": "{{ {'a': 1.0} }}"}, '{"a":1}', "text/plain; charset=utf-8"),
    ],
)
@pytest.mark.parametrize("own", [None, "content-type", "CONTENT-TYPE"])
def test_each_body_is_encoded_its_way_and_a_given_content_type_stays(
    tools: FakeTools, body: dict[str, Any], content: str, kind: str, own: str | None
) -> None:
    tool: dict[str, Any] = {"method": "POST", "url": tools.url + "/x", "body": body}
    request = sent(tools, tool | ({"headers": {own: "own/type"}} if own else {}))
    assert request.body.decode() == content
    types = [value for name, value in request.headers if name.lower() == "content-type"]
    assert types == [kind if own is None else "own/type"]
    assert "call" not in str(request)
