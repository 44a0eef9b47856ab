"""Loading: stages, places of errors, what messages tell, and what they never repeat."""

from __future__ import annotations

import re

import pytest

from tests.spec.specs import accepted, errors, only_error, spec
from workflows.spec.load import load


def http(rest: str) -> str:
    tool = "    - name: find\n      action: http_request\n      method: POST\n      url: https://example.net/\n"
    return spec(f"  tools:\n{tool}{rest}")


def step(rest: str, version: str = "1.1") -> str:
    return spec(f"  workflow:\n    - step: s\n{rest}", version)


def test_an_error_stands_at_the_value_and_a_missing_key_has_no_place() -> None:
    error = only_error(http('      headers:\n        Accept: "*/*"\n        X-Count: 5\n'))
    missing = only_error(spec("").replace("  role: Clerk\n", ""))

    assert (error.where, error.line, error.column) == ("agent.tools.0.headers.X-Count", 14, 18)
    assert (missing.where, missing.line, missing.column) == ("agent.role", None, None)
    assert "string" in error.message
    assert str(error).startswith("14:18: agent.tools.0.headers.X-Count: ")


def test_a_syntax_error_is_the_only_error() -> None:
    error = only_error("agent: 5\nversion: [\n")

    assert error.path == ()
    assert error.line == 3
    assert "line 3" in error.message


@pytest.mark.parametrize("text", ["", "# nothing\n", "[1]", "text", "~"])
def test_what_is_not_a_mapping_is_an_error_of_the_whole_document(text: str) -> None:
    assert only_error(text).path == ()


@pytest.mark.parametrize("version", ["1.0", "~", "'1'", "'1.9'", "' 1.0'", "''", "true", "[1.1]", "1.1"])
def test_another_version_is_refused_with_the_ones_there_are(version: str) -> None:
    error = only_error(spec("").replace('"1.1"', version))

    assert error.path == ("version",)
    assert '"1.0"' in error.message
    assert '"1.1"' in error.message


def test_a_hard_fault_stops_the_rules_of_its_block_and_of_the_whole() -> None:
    text = spec(
        "  model: {provider: acme, name: m}\n"
        "  workflow:\n    - {step: input, action: a, query: '{{ nobody }}', output_schema: {type: string}}\n"
    )

    assert [error.where for error in errors(text)] == ["agent.model.provider"]


def test_soft_faults_are_told_together_with_the_rules_of_the_whole_and_stop_the_expressions() -> None:
    text = spec(
        "  model: {provider: openai, name: ''}\n"
        "  workflow:\n    - {step: a, action: a, query: '{{ nobody }}', output_schema: {type: string}}\n"
    )

    assert [error.where for error in errors(text)] == [
        "agent.model.name", "agent.model.api_key", "agent.workflow.0.output_schema.type",
    ]  # fmt: skip


def test_expression_errors_come_in_the_order_of_steps_and_then_tools() -> None:
    text = spec(
        "  tools:\n    - {name: t, action: slack_post_message, token: '${T}', channel: '{{ x }}', text: t}\n"
        "  workflow:\n"
        "    - {step: vars, type: condition, then: '{{ y }}', if: z.a, else: e}\n"
        "    - {step: b, action: a, query: '{{ v }}{{ w.x }} {{ vars.u }}'}\n"
    )

    found = errors(text)

    assert [error.where for error in found] == [
        "agent.workflow.0.step", "agent.workflow.0.if", "agent.workflow.0.then",
        "agent.workflow.1.query", "agent.workflow.1.query", "agent.workflow.1.query", "agent.tools.0.channel",
    ]  # fmt: skip
    assert "vars.u" in found[5].message
    assert 'no "vars" block' in found[5].message


def test_an_unknown_name_comes_with_what_there_is_and_how_to_write_it() -> None:
    text = spec("  workflow:\n    - {step: fetch-rows, action: a}\n    - {step: b, action: a, query: '{{ nobody }}'}\n")

    message = only_error(text).message

    assert all(word in message for word in ("nobody", "trigger", "input", "vars", "fetch-rows", "backtick", "`"))


def test_an_error_in_a_later_line_of_a_text_says_so() -> None:
    text = spec("  workflow:\n    - step: b\n      action: a\n      query: |\n        first\n        {{ nobody }}\n")

    assert "line 2" in only_error(text).message


@pytest.mark.parametrize(
    ("rest", "where", "words"),
    [
        ("", "agent.workflow.0.action", ["type", "action", "condition", "approval"]),
        ("      type: loop\n", "agent.workflow.0.type", ["type", "loop", "condition"]),
        ("      type: condition\n      if: a\n      then: b\n", "agent.workflow.0.else", ["else"]),
        ("      type: condition\n      if: true\n      then: b\n      else: c\n", "agent.workflow.0.if", ["string"]),
        ("      type: tool\n      tool: ''\n", "agent.workflow.0.tool", ["tool", "empty"]),
        ("      action: a\n      temperature: 3\n", "agent.workflow.0.temperature", ["at most 2"]),
        ("      type: approval\n      message: 5\n", "agent.workflow.0.message", ["string"]),
        ("      action: a\n      confidence_gate: 1\n", "agent.workflow.0.confidence_gate", ["boolean"]),
    ],
)
def test_a_step_that_fits_no_kind_is_told_what_it_lacks(rest: str, where: str, words: list[str]) -> None:
    error = only_error(step(rest))

    assert error.where == where
    assert all(word in error.message for word in words)


def test_a_condition_without_a_branch_but_with_an_action_is_an_action_step() -> None:
    loaded = accepted(step("      type: condition\n      if: a\n      action: b\n"))

    assert loaded.spec is not None
    assert type(loaded.spec.agent.workflow[0]).__name__ == "ActionStep"


@pytest.mark.parametrize("key", ["output_schema: {type: object, properties: {a: {type: string}}}", "instructions: i",
                                 "model: m", "temperature: 0"])  # fmt: skip
def test_what_came_with_1_1_is_refused_in_1_0(key: str) -> None:
    error = only_error(step(f"      action: a\n      {key}\n", "1.0"))

    assert error.where == f"agent.workflow.0.{key.split(':')[0]}"
    assert '"1.1"' in error.message


def test_even_an_empty_vars_block_is_refused_in_1_0() -> None:
    assert only_error("vars: {}\n" + spec("", "1.0")).where == "vars"


@pytest.mark.parametrize(
    "text",
    [
        spec("  model: {provider: openai, name: m, api_key: hunter2}\n"),
        spec('  model:\n    provider: openai\n    name: m\n    api_key: "${hunter2} "\n'),
        http("      headers: {Authorization: Bearer hunter2}\n"),
        http("      query: {api_key: hunter2}\n"),
        spec("  approval_notifier: {type: slack, token: hunter2, channel: c}\n"),
        spec("  tools:\n    - {name: c, action: component, use: a/b@1.0.0, op: o, secrets: {t: hunter2}}\n"),
    ],
)
def test_a_literal_secret_is_refused_and_never_repeated(text: str) -> None:
    error = only_error(text)

    assert "environment" in error.message
    assert "hunter2" not in error.message


def test_names_that_look_alike_but_are_not_the_same_are_refused() -> None:
    text = spec('  workflow:\n    - {step: "caf\\u00e9", action: a}\n    - {step: "cafe\\u0301", action: a}\n')

    assert only_error(text).where == "agent.workflow.1.step"
    accepted(spec("  workflow:\n    - {step: a, action: a}\n    - {step: a, action: a}\n"))


@pytest.mark.parametrize("place", ["minimum: {}", "enum: [{}]", "default: {}"])
@pytest.mark.parametrize("number", ["1" + "0" * 400, "-" + "9" * 310, ".inf", ".nan"])
def test_a_number_that_no_fraction_can_hold_is_refused_in_words(place: str, number: str) -> None:
    schema = f"{{type: object, properties: {{x: {{type: number, {place.format(number)}}}}}}}"
    text = spec(f"  workflow:\n    - {{step: a, action: b, output_schema: {schema}}}\n")
    assert re.search("too large or not finite|infinite or not a number", only_error(text).message)


def test_infinity_is_ignored_where_keys_are_ignored_and_refused_in_a_body() -> None:
    assert only_error(http("      body: {json: {rows: [1, .inf]}}\n")).where == "agent.tools.0.body.json.rows.1"
    accepted(spec("  surprise: [.inf, .nan]\n"))


@pytest.mark.parametrize("value", ["~", "5", "true", "[]", "{}", "[[]]", "{a: b}", ".nan", "''", "1e999", "{? [a]: b}"])
def test_any_value_in_any_place_ends_in_a_spec_or_in_errors(value: str) -> None:
    text = http("      body:\n        json: {a: [1]}\n      retry: {max: 3}\n")
    places = [line for line in text.splitlines() if ":" in line]

    for line in places:
        loaded = load(text.replace(line, f"{line.split(':')[0]}: {value}"))
        assert (loaded.spec is None) == bool(loaded.errors), line

    assert len(places) > 10


@pytest.mark.parametrize("number", [".inf", "-.INF", ".nan", "1e999", "9" * 400, "-" + "9" * 400])
@pytest.mark.parametrize(
    "where",
    ["body: {json: {rows: [#]}}", "failure_when: [{path: a, equals: #}]", "pace: {rps: #}", "retry: {max: #}"],
)
def test_what_no_reader_holds_as_a_number_is_refused_wherever_a_number_may_stand(where: str, number: str) -> None:
    error = only_error(http(f"      {where.replace('#', number)}\n"))

    assert "number" in error.message
    assert error.line == 12
