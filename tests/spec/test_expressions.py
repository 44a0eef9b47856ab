"""Expressions: what is refused, what is read from the root, and the mended parser."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from jsonata.jsonata import Jsonata

from workflows.spec import jsonata_parser
from workflows.spec.expressions import check, names


@pytest.mark.parametrize(
    ("source", "words", "position"),
    [
        ("", "empty", None),
        (" \n ", "empty", None),
        ("x" * 4001, "4000", None),
        ("a = = 1", "not valid JSONata", 5),
        ("a && b", "not valid JSONata", 4),
        ("a == 1", "not valid JSONata", 4),
        ("!a", "unknown operator !", 1),
        ("'it\\'s'", "escape", 4),
        ("(a", "Expected )", 2),
        ("a ?? ", "ends too early", None),
        ("/* open", "ends too early", None),
        ("{ x }", "Expected :", 5),
        ("a\n  = = 1", "line 2", 7),
        ("$now()", "$now", 4),
        ("$contains(a, /x/)", "regular expression", 16),
        ("a[b = /[/]", "not valid JSONata", None),
    ],
)
def test_a_refusal_says_why_and_where(source: str, words: str, position: int | None) -> None:
    problem = check(source)[0]

    assert words in problem.message
    if position is not None:
        assert problem.position == position
        assert f"character {position}" in problem.message


@pytest.mark.parametrize(
    "source",
    [
        "$millis()", "($f := $now; $f())", "$map(a, $random)", "a.$shuffle(b)", "function($x){ $eval($x) }(1)",
        "a[$now() = b]", "a ~> $shuffle", "($now := 1; $now)", "function($now){ 1 }(2)", "a^($random())",
        "a{'k': $now()}", "a ~> |b|{'c': $now()}|", "$sort(a, function($l, $r){ $random() > 0.5 })", "a ?? $now()",
        "a ?: $now()", "$now ?? 1", "a ? b : $millis()", "{'k': $now()}", "[$now()]", "$f(?, $now())", "a@$now.b",
        "a#$eval.b", "a[b]#$shuffle", "-$random()", "a.{'b': [$now()]}",
    ],
)  # fmt: skip
def test_a_forbidden_function_is_found_wherever_it_hides(source: str) -> None:
    problems = check(source)

    assert problems
    assert all("is not available" in problem.message for problem in problems)


def test_all_uses_of_forbidden_functions_are_reported() -> None:
    assert [problem.position for problem in check("$now() & $random() & $now()")] == [4, 16, 25]


@pytest.mark.parametrize(
    "source", ["trigger.now", "'$now()'", "a / b / c", "`$now`.x", "$nowhere()", "$exists(a)", "x" * 4000]
)
def test_what_only_looks_forbidden_is_accepted(source: str) -> None:
    assert check(source) == []


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("a.b.c > vars.x and `q r`.z", ["a.b.c", "vars.x", "q r.z"]),
        ("a ~> $f(b)", ["a", "b"]), ("[a, b..c]", ["a", "b", "c"]), ("{a: b}", ["a", "b"]), ("(a; b)", ["a", "b"]),
        ("(a).x", ["a"]), ("$x := a", ["a"]), ("a ? b : c", ["a", "b", "c"]), ("a ?: b", ["a", "b"]),
        ("a ?? b ?? c", ["a", "b", "c"]), ("$f(a).b", ["a"]), ("a[0].b", ["a.b"]), ("-a", ["a"]),
        ("a in b", ["a", "b"]),
        ("fetch-rows.ok", ["fetch", "rows.ok"]), ('"nobody".x', ["nobody.x"]), ("a and and", ["a", "and"]),
        ("a.(b * c)", ["a"]), ("a.{'k': b}", ["a"]), ("a^(b)", ["a"]), ("a[b > c]", ["a"]), ("a{b: c}", ["a"]),
        ("$map(a, function($v){ b })", ["a"]), ("a ~> |b|{'c': d}, e|", ["a"]), ("$.x", []), ("$$.x", []), ("$x.y", []),
        ("*.x", []), ("**.x", []), ("'text'", []), ("[1..3][0]", []),
        ("$lookup(vars, 'x')", ["vars"]), ("call(a)", ["a"]),
    ],
)  # fmt: skip
def test_it_knows_what_is_read_from_the_root(source: str, read: list[str]) -> None:
    assert check(source) == []
    assert [".".join(path) for path in names(source)] == read


DATA = {"items": [{"a": 1}, {"a": 2}], "n": {"m": 5}, "zero": 0}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("-5 ?? 99", -5), ("[1,2,3][-1] ?? 42", 3), ("items[-1] ?? {}", {"a": 2}), ("items[-1].a ?: 7", 2),
        ("nope ?? -3", -3), ("nope ?? nope2 ?? 4", 4), ("(nope ?? -2) ?? 1", -2), ("zero ?: -1", -1), ("-1 ?: 2", -1),
        ("$map([1,2], function($v){ nope ?? $v })", [1, 2]), ("n.m ?? 3 + 4", 5), ("items.(zz ?? %.n.m)", [5, 5]),
        ("($f := function($x){ ($string($x)) ?? 3 }; $f(5))", "5"),
        ("($f := function($x){ (1; $string($x)) ?: 3 }; $f(5))", "5"),
        ("($f := function($x){ $x > 900 ? $x : nope ?? $f($x + 1) }; $f(0))", 901),
    ],
)  # fmt: skip
def test_alternatives_keep_the_sign_of_their_left_side(source: str, value: Any) -> None:
    library = Jsonata("1")
    library.ast = jsonata_parser.parse(source)

    assert library.evaluate(DATA, {}) == value


def test_nested_alternatives_stay_as_large_as_their_source() -> None:
    tree = jsonata_parser.parse("(" * 300 + "a" + " ?? b)" * 300)

    depth = 0
    while tree.type in ("block", "condition"):
        tree, depth = (tree.expressions[0] if tree.type == "block" else tree.then), depth + 1
    assert depth == 600


def test_the_recursion_limit_is_as_it_was_after_a_deep_source() -> None:
    before = sys.getrecursionlimit()

    assert check("(" * 1999 + "1" + ")" * 1999) == []
    assert sys.getrecursionlimit() == before
