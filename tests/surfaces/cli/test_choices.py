"""The choices of docs/choices.md that a run shows, each as a user meets it. The others have tests where they belong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import HEAD, command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

LEGACY = HEAD.replace('"1.1"', '"1.0"')


@pytest.fixture
def server(settings: Settings) -> Iterator[FakeTools]:
    settings.KAMPONG_PRIVATE_ADDRESSES = ["*"]
    with FakeTools({"POST /x": {"json": {"n": 1}}, "GET /x": {"json": {"n": 1}}}) as server:
        yield server


def call(url: str, rest: str, method: str = "POST") -> str:
    return f"  tools:\n    - {{ name: t, action: http_request, method: {method}, url: '{url}/x'{rest} }}\n" + (
        "  workflow:\n    - { step: go, type: tool, tool: t }\n"
    )


def run(folder: Path, text: str, input: str = "{}", *words: str, answers: str = "") -> dict[str, Any]:
    told = command("run_spec", spec_at(folder, text), "--input", input, "--json", *words, text=answers)
    result: dict[str, Any] = told.object()
    assert told.code == (0 if result["success"] else 2)
    return result


def test_only_the_tools_own_keys_are_left_alone_by_templates(tmp_path: Path, server: FakeTools) -> None:
    keys = ("name", "token", "method", "action", "op", "use", "config", "secrets", "extract", "requires_approval")
    json = ", ".join(f"{key}: '{{{{ input }}}}'" for key in keys)

    run(
        tmp_path,
        HEAD + call(server.url, f", body: {{ json: {{ {json} }} }}, query: {{ name: '{{{{ input }}}}' }}"),
        "in",
    )

    (request,) = server.requests
    assert request.json() == dict.fromkeys(keys, "in")
    assert request.url.endswith("/x?name=in")


@pytest.mark.parametrize(("value", "text"), [("5", "5"), ("[1, true]", "[1,true]"), ("true", "true"), ("null", "null")])
def test_one_expression_where_text_is_needed_becomes_text(
    value: str, text: str, tmp_path: Path, server: FakeTools
) -> None:
    span = "'{{ trigger.v }}'"
    run(
        tmp_path, HEAD + call(server.url, f", headers: {{ X-V: {span} }}, body: {{ raw: {span} }}"), f'{{"v": {value}}}'
    )

    (request,) = server.requests
    assert request.header("x-v") == text
    assert request.body == text.encode()


@pytest.mark.parametrize("head", [HEAD, LEGACY])
def test_data_arrives_as_it_is_whatever_it_spells(
    head: str, tmp_path: Path, server: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_KEY", "never")
    data = "costs ${5} $${HOME_KEY} ${HOME_KEY} {input} {{ input }} $"

    run(tmp_path, head + call(server.url, ", body: { json: { v: '{{ input }}' } }"), data)

    assert server.requests[0].json() == {"v": data}


def test_the_keys_of_data_arrive_as_they_are(tmp_path: Path, server: FakeTools) -> None:
    data = '{"${5}": 1, "$${A}": 2, "{input}": 3}'

    run(tmp_path, HEAD + call(server.url, ", body: { json: { v: '{{ trigger.body }}' } }"), data)

    assert server.requests[0].json() == {"v": {"${5}": 1, "$${A}": 2, "{input}": 3}}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("t.a == 1 and t.b == 2", False),
        ("t.a == 1", True),
        ("t.none < 1", True),
        ("t.blank < 1", True),
        ("t.yes >= 1", True),
        ("t.missing < 1", False),
        ("t.missing != 1", True),
    ],
)
def test_a_1_0_condition_is_one_comparison_with_the_numbers_of_old(
    condition: str, holds: bool, tmp_path: Path, server: FakeTools
) -> None:
    server.script["POST /x"] = {"json": {"a": 1, "b": 2, "none": None, "blank": " ", "yes": True}}
    text = LEGACY + call(server.url, "").replace("step: go", "step: t")
    text += f"    - {{ step: c, type: condition, if: '{condition}', then: request_human_approval, else: nowhere }}\n"

    result = run(tmp_path, text, "x", "--approve-all")

    assert result["success"] is holds


def test_an_answer_that_is_no_json_names_tool_and_address_and_is_not_asked_for_again(
    tmp_path: Path, server: FakeTools
) -> None:
    server.script["GET /x"] = {"text": "<html>"}

    result = run(tmp_path, HEAD + call(server.url, ", retry: { max: 3, base_ms: 1 }", "GET"))

    assert "t" in result["error"]
    assert f"{server.url}/x" in result["error"]
    assert len(server.requests) == 1


def test_a_tool_that_does_not_answer_ends_at_the_limit(tmp_path: Path, server: FakeTools, settings: Settings) -> None:
    settings.KAMPONG_TOOL_TIMEOUT = 0.3
    server.script["GET /x"] = {"hang": 60}
    started = time.monotonic()

    result = run(tmp_path, HEAD + call(server.url, "", "GET"))

    assert "0.3" in result["error"]
    assert time.monotonic() - started < 30


def test_a_missing_variable_is_found_after_the_approval_and_a_template_before(
    tmp_path: Path, server: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GONE", raising=False)
    gone = call(server.url, ", requires_approval: true, headers: { X-A: '${GONE}' }")
    nothing = call(server.url, ", requires_approval: true, headers: { X-A: '{{ trigger.gone }}' }")

    approved = command("run_spec", spec_at(tmp_path, HEAD + gone), "--input", "{}", "--approve-all")
    unasked = command("run_spec", spec_at(tmp_path, HEAD + nothing), "--input", "{}", "--approve-all")

    assert "GONE" in approved.err
    assert "pproved" in approved.err
    assert unasked.code == 2
    assert "pproved" not in unasked.err
    assert server.requests == []


def test_the_end_of_input_rejects_and_each_prompt_takes_one_line(tmp_path: Path) -> None:
    text = HEAD + "  workflow:\n    - { step: a, type: approval }\n    - { step: b, type: approval }\n"

    ended = run(tmp_path, text, "x", answers="y\n")
    both = run(tmp_path, text, "x", answers="y\nn: too late\n")
    passed = run(tmp_path, text, "x", answers="y\ny\n")

    assert [ended["status"], both["status"], passed["status"]] == ["rejected", "rejected", "completed"]
    assert both["error"] == "too late"


def test_an_extract_that_finds_nothing_completes_its_step_without_a_value(tmp_path: Path, server: FakeTools) -> None:
    result = run(tmp_path, HEAD + call(server.url, ", extract: 'n[0].x'"))

    assert result["output"] == {}
    assert result["trace"] == [{"step": "go", "status": "completed"}]


def test_a_model_is_needed_also_when_no_step_asks_one(tmp_path: Path, server: FakeTools) -> None:
    head = "".join(line for line in HEAD.splitlines(keepends=True) if "model:" not in line)

    told = command("run_spec", spec_at(tmp_path, head + call(server.url, "")), "--input", "{}", "--json")

    assert (told.code, told.object()["phase"]) == (2, "execution")
    assert "model" in told.object()["error"]
    assert server.requests == []


def test_what_1_0_does_not_know_stays_as_it_is_written(tmp_path: Path, server: FakeTools) -> None:
    written = "{{ trigger.id }} {trigger.id} {{ vars.x }} {{ 1 + 1 }} {{ input }}"

    run(tmp_path, LEGACY + call(server.url, f", body: {{ raw: '{written}' }}"), "in")

    assert server.requests[0].body.decode() == written.replace("{{ input }}", "in")


def test_the_first_tool_of_a_name_is_called_and_the_last_step_of_a_name_is_kept(
    tmp_path: Path, server: FakeTools
) -> None:
    server.script["POST /x"] = [{"json": {"n": 1}}, {"json": {"n": 2}}]
    text = HEAD + call(server.url, "").replace(
        "  workflow:\n",
        "    - { name: t, action: http_request, method: GET, url: 'http://127.0.0.1:1/' }\n  workflow:\n",
    )
    text += "    - { step: go, type: tool, tool: t }\n"

    result = run(tmp_path, text)

    assert result["output"] == {"go": {"n": 2}}
    assert [step["output"]["n"] for step in result["trace"]] == [1, 2]


def test_a_step_that_lacks_a_branch_and_has_an_action_asks_the_model(tmp_path: Path) -> None:
    text = HEAD + "  workflow:\n    - { step: s, type: condition, if: 'true', then: nowhere, action: a }\n"

    assert "Ollama" in run(tmp_path, text)["error"]


def test_a_doubled_dollar_is_sent_as_text(tmp_path: Path, server: FakeTools) -> None:
    run(tmp_path, HEAD + call(server.url, ", headers: { Authorization: 'Bearer $${TOKEN}' }"))

    assert server.requests[0].header("authorization") == "Bearer ${TOKEN}"
