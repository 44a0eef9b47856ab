"""The choices of docs/choices.md about a file that no other test here holds."""

from __future__ import annotations

import pytest

from tests.spec.specs import accepted, errors, only_error, spec


def query(text: str) -> str:
    return spec(
        f"  workflow:\n    - {{step: a, action: x}}\n    - step: b\n      action: x\n      query: |-\n        {text}\n"
    )


def config(value: str) -> str:
    return spec(f"  tools:\n    - {{name: f, action: component, use: a/b@1.0.0, op: x, config: {{k: '{value}'}}}}\n")


def test_an_environment_reference_of_1_0_is_no_old_placeholder() -> None:
    request = "action: http_request, method: GET, url: 'https://e.net/${A}', headers: {X: '${B}'}"

    assert accepted(spec(f"  tools:\n    - {{name: f, {request}}}\n", "1.0")).notes == ()


def test_a_variable_that_holds_one_of_the_words_counts_as_a_secret() -> None:
    error = only_error(config("${MONKEY_ID}"))

    assert error.where == "agent.tools.0.config.k"
    assert "MONKEY_ID" in error.message
    accepted(config("x${MONKEY_ID}"))


def test_the_names_of_a_grouping_are_not_the_roots() -> None:
    accepted(query("{{ a{nobody: c} }}"))


def test_quoted_text_at_the_head_of_a_path_is_a_name() -> None:
    assert '"nobody"' in only_error(query('{{ "nobody".x }}')).message
    accepted(query('{{ "a".x }}'))


@pytest.mark.parametrize(("count", "fits"), [(3998, True), (3999, False)])
def test_a_length_counts_code_points(count: int, fits: bool) -> None:
    text = query("{{'" + "\U0001f600" * count + "'}}")

    assert (accepted(text).errors == ()) if fits else ("4000" in only_error(text).message)


def test_an_escaped_apostrophe_is_inside_the_span_and_no_jsonata() -> None:
    (error,) = errors(query(r"{{ 'it\'s' }} {{ input }}"))

    assert "not valid JSONata" in error.message
    assert "character 5" in error.message


@pytest.mark.parametrize("vars_", ["{__proto__: {type: string}}", "{a: {type: string, __proto__: 1}}"])
def test_a_prototype_is_refused_by_name_and_never_dropped(vars_: str) -> None:
    error = only_error(spec("").replace("agent:\n", f"vars: {vars_}\nagent:\n", 1))

    assert "__proto__" in error.message
