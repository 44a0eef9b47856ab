"""Vars of a run: where values come from, how text is read, and all problems at once (format 4.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.specs import spec_of
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.engine.vars import VarsError, names_needed, resolve, secrets_in
from workflows.spec.model import VarDecl

NUMBER = VarDecl(type="number")
STRING = VarDecl(type="string")
WORDS = VarDecl(type="list")
NUMBERS = VarDecl(type="list", items="number")


def given(decl: VarDecl, value: Json) -> Json:
    return resolve(spec_of(vars={"x": decl}), {"x": value}, {})["x"]


def problem(decl: VarDecl, value: Json) -> str:
    with pytest.raises(VarsError) as refusal:
        given(decl, value)
    assert str(refusal.value).startswith("vars.x")
    return str(refusal.value)


def with_default(type: Any, default: Json, **more: Any) -> VarDecl:
    return VarDecl(type=type, default=default, has_default=True, **more)


@pytest.mark.parametrize(
    ("decl", "text", "value"),
    [
        (STRING, "", ""),
        (STRING, "  as it is ", "  as it is "),
        (STRING, "${NAME}", "${NAME}"),
        (NUMBER, "7.5", 7.5),
        (NUMBER, " -3 ", -3),
        (NUMBER, "+5.", 5),
        (NUMBER, ".5", 0.5),
        (NUMBER, "1e3", 1000),
        (NUMBER, "-2.5E-1", -0.25),
        (NUMBER, "12345678901234567890", 12345678901234567890),
        (WORDS, "GOOG, AMZN,,", ["GOOG", "AMZN"]),
        (WORDS, "", []),
        (WORDS, " , ", []),
        (WORDS, '["a", " b ", 3.0, 1.5]', ["a", " b ", "3", "1.5"]),
        (WORDS, "  []", []),
        (NUMBERS, "1, 2.5,", [1, 2.5]),
        (NUMBERS, '[1, " 2 ", 3.5]', [1, 2, 3.5]),
    ],
)
def test_text_is_read_as_the_declared_type(decl: VarDecl, text: str, value: Json) -> None:
    assert jsontext.same(given(decl, text), value)


NO_NUMBERS = [
    "",
    " ",
    "0x10",
    "Infinity",
    "-inf",
    "nan",
    "1_000",
    "1,5",
    "1e999",
    "9" * 5_000,
    "٣",
    "1 2",
    ".",
    "e5",
    "5x",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_text_that_is_no_decimal_number_is_a_problem(text: str) -> None:
    assert "the value given" in problem(NUMBER, text)
    assert "a number" in problem(NUMBER, text)


@pytest.mark.parametrize(
    ("decl", "text"),
    [
        (WORDS, "[1, 2"),
        (WORDS, "[a]"),
        (WORDS, "[NaN]"),
        (WORDS, "[true]"),
        (WORDS, "[null]"),
        (WORDS, "[[1]]"),
        (WORDS, '[{"a": 1}]'),
        (NUMBERS, "1, two"),
        (NUMBERS, '["two"]'),
        (NUMBERS, "[true]"),
        (NUMBERS, "[1e999]"),
        (NUMBERS, "0x10"),
    ],
)
def test_text_that_is_no_list_of_the_item_type_is_a_problem(decl: VarDecl, text: str) -> None:
    assert "a list of" in problem(decl, text)


@pytest.mark.parametrize(
    ("decl", "value"), [(NUMBER, 5), (NUMBER, 2.5), (WORDS, ["a", ""]), (WORDS, []), (NUMBERS, [1, 2.5])]
)
def test_a_typed_value_of_the_declared_type_is_taken_as_it_is(decl: VarDecl, value: Json) -> None:
    assert jsontext.same(given(decl, value), value)


@pytest.mark.parametrize(
    ("decl", "value"),
    [
        (NUMBER, True),
        (NUMBER, None),
        (NUMBER, [1]),
        (NUMBER, float("nan")),
        (NUMBER, float("inf")),
        (STRING, 5),
        (STRING, None),
        (STRING, False),
        (STRING, ["a"]),
        (WORDS, 5),
        (WORDS, None),
        (WORDS, {"a": 1}),
        (WORDS, ["a", 1]),
        (WORDS, [True]),
        (NUMBERS, [1, "2"]),
        (NUMBERS, [True]),
        (NUMBERS, [None]),
    ],
)
def test_a_typed_value_of_another_type_is_a_problem(decl: VarDecl, value: Json) -> None:
    assert "the value given" in problem(decl, value)


def test_an_override_wins_over_the_default_and_the_default_over_nothing() -> None:
    spec = spec_of(vars={"a": with_default("number", 5), "b": with_default("list", ["A", "B"]), "c": STRING})
    assert resolve(spec, {"a": "7.5", "c": "x", "undeclared": 1}, {}) == {"a": 7.5, "b": ["A", "B"], "c": "x"}
    assert list(resolve(spec, {"c": "x", "a": 1}, {})) == ["a", "b", "c"]


def test_a_default_that_is_a_reference_is_read_and_parsed() -> None:
    decls = {
        "n": with_default("number", "${LIMIT}"),
        "l": with_default("list", "${NAMES}", items="string"),
        "s": with_default("string", "${REGION}"),
        "around": with_default("string", "eu-${REGION}"),
        "again": with_default("string", "${REGION}"),
    }
    spec = spec_of(vars=decls)
    assert names_needed(spec, {}) == ("LIMIT", "NAMES", "REGION")
    env = {"LIMIT": " 2.50 ", "NAMES": "tea, coffee", "REGION": "${OTHER}"}
    assert resolve(spec, {}, env) == {
        "n": 2.5,
        "l": ["tea", "coffee"],
        "s": "${OTHER}",
        "around": "eu-${REGION}",
        "again": "${OTHER}",
    }


def test_an_overridden_var_needs_no_environment() -> None:
    spec = spec_of(vars={"a": with_default("number", "${LIMIT}"), "b": with_default("string", "${B}")})
    assert names_needed(spec, {"a": "1", "b": "${C}"}) == ()
    assert resolve(spec, {"a": "1", "b": "${C}"}, {}) == {"a": 1, "b": "${C}"}


@pytest.mark.parametrize("env", [{}, {"LIMIT": None}, {"LIMIT": ""}])
def test_an_unset_or_empty_variable_is_a_problem_that_names_it(env: dict[str, str | None]) -> None:
    with pytest.raises(VarsError, match=r"vars\.a: .*LIMIT"):
        resolve(spec_of(vars={"a": with_default("number", "${LIMIT}")}), {}, env)


def test_all_problems_are_told_together_each_with_its_source() -> None:
    decls = {"a": NUMBER, "b": with_default("number", "${NUMB}"), "c": with_default("string", "fine"), "d": WORDS}
    with pytest.raises(VarsError) as refusal:
        resolve(spec_of(vars=decls), {"d": "[oops"}, {"NUMB": "lots"})
    first, second, third = refusal.value.problems
    assert first.startswith("vars.a")
    assert "no value" in first
    assert second.startswith("vars.b")
    assert "environment variable NUMB" in second
    assert '"lots"' in second
    assert "a number" in second
    assert third.startswith("vars.d")
    assert "[oops" in third
    assert refusal.value.message == "; ".join(refusal.value.problems)


@pytest.mark.parametrize(
    ("type", "text"), [("number", "canary"), ("list", "canary, 5"), ("list", '["canary"]'), ("list", "[canary")]
)
@pytest.mark.parametrize("variable", ["PAY_TOKEN", "api_key"])
def test_a_variable_that_looks_like_a_secret_is_named_and_its_text_not_shown(
    type: str, text: str, variable: str
) -> None:
    decl = with_default(type, f"${{{variable}}}", items="number")
    says = rf"vars\.a: the environment variable {variable} is not a .*not shown"
    with pytest.raises(VarsError, match=says) as refusal:
        resolve(spec_of(vars={"a": decl}), {}, {variable: text})
    assert "canary" not in refusal.value.message
    with pytest.raises(VarsError, match="canary"):
        resolve(spec_of(vars={"a": decl}), {"a": text}, {})


def test_a_default_that_does_not_fit_is_called_the_default() -> None:
    with pytest.raises(VarsError, match=r"vars\.a: the default"):
        resolve(spec_of(vars={"a": with_default("number", "many")}), {}, {})


def test_a_problem_does_not_repeat_a_whole_novel() -> None:
    assert len(problem(NUMBER, "x" * 10_000)) < 300


def test_the_secrets_of_vars_are_what_was_read_and_what_became_of_it() -> None:
    decls = {
        "plain": with_default("string", "${PAY_TOKEN}"),
        "some": with_default("list", "${API_KEYS}", items="string"),
        "number": with_default("number", "${SECRET_PIN}"),
        "unfit": with_default("number", "${PASSWD_AGE}"),
        "data": with_default("string", "${REGION}"),
        "around": with_default("string", "eu-${OTHER_TOKEN}"),
        "unset": with_default("string", "${NO_TOKEN}"),
    }
    env = {"PAY_TOKEN": "a", "API_KEYS": "b, c", "SECRET_PIN": "+0123", "PASSWD_AGE": "x", "REGION": "eu"}
    found = secrets_in(spec_of(vars=decls), {**env, "OTHER_TOKEN": "o"})
    assert found == {"a", "b, c", "b", "c", "+0123", "123", "x"}


def test_a_1_0_spec_has_no_vars() -> None:
    spec = spec_of(version="1.0", vars={"a": NUMBER})
    assert names_needed(spec, {}) == ()
    assert resolve(spec, {"a": "x"}, {}) == {}
    assert secrets_in(spec_of(version="1.0", vars={"a": with_default("string", "${A_KEY}")}), {"A_KEY": "a"}) == set()
