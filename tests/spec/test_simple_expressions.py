"""The short cut for simple expressions says what the parser says, or nothing."""

from __future__ import annotations

import random

import pytest

from tests.counts import count
from workflows.spec.expressions import Examined, examined_by_parser
from workflows.spec.simple_expressions import paths_of

TOKENS = (
    "trigger", "vars.x", "a.b.c", "_a1", "order", "android", "inner", "nullable", "true", "false", "null", "and", "or",
    "in", "a.and", "a.true.b", "true.a", "in.a", "function", "`a b`", "$x", "$", "$$", "$count(a)", "$sum( a.b , 1 )",
    "$now()", "$nowhere(a)", "$eval('x')", "$f()", "$f(a b)", "$f(,)", "é", "aé", "0", "1", "007", "1.50", "1.", ".5",
    "1e5", "5a", "12345678901234567890", "'it'", '"say \'x\'"', "'a\\'b'", "'", '"', "=", "!=", "<", "<=", ">", ">=",
    "+", "-", "*", "/", "%", "&", ":=", "~>", "??", "?", ":", "^", "@", "#", "!", "|", "..", ".", ",", "(", ")", "[",
    "]", "{", "}", " ", "\n", "\t", "\xa0", "/*", "*/", "/* a */",
)  # fmt: skip
OPERANDS = [token for token in TOKENS if token[0].isalnum() or token[0] in "_$'\""]
OPERANDS += ["a[0]", "a.b[-1].c", "a[x > 1 and $count(y) = 2][0].z", "a[b[0]]", "a['x]'].b", "a[x.y = ']'].b", "a[]"]
OPERANDS += ["$sum(a[x > 1].b)", "vars.x[y]", "a[$now()]", "a[$]", "a[1..2]", "-a", "-1", "a [0]", "a[ 0 ]", "true[0]"]
OPERATORS = (
    " ? ",
    " : ",
    "?",
    ":",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    " and ",
    " or ",
    " in ",
    "\nand\t",
)


def expression(pick: random.Random) -> str:
    if pick.random() < 0.5:
        return "".join(pick.choice(TOKENS) + pick.choice(("", " ")) for _ in range(pick.randint(1, 6)))
    parts = [pick.choice(OPERANDS)]
    for _ in range(pick.randint(0, 5)):
        blank = pick.choice(("", "", " "))
        parts += [blank + pick.choice(OPERATORS) + blank, pick.choice(OPERANDS)]
    return "".join(parts)


def test_it_never_differs_from_the_parser() -> None:
    pick = random.Random("simple expressions")
    judged = 0
    for _ in range(count(20_000, 300_000)):
        source = expression(pick)
        paths = paths_of(source)
        if paths is not None:
            judged += 1
            assert Examined(names=paths) == examined_by_parser(source), source
    assert judged > count(1_500, 22_500)


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("trigger.moisture < vars.dry_below and judge.minutes > 0",
         (("trigger", "moisture"), ("vars", "dry_below"), ("judge", "minutes"))),
        (" input ", (("input",),)),
        ("$count(trigger.items) > 3", (("trigger", "items"),)),
        ("a = a", (("a",),)),
        ("$sum(items[price > 10].qty) > 3 ? a.b : 'none'", (("items", "qty"), ("a", "b"))),
        ("rows[-1].id", (("rows", "id"),)),
        ("'a.b' & \"c\"", ()),
    ],
)  # fmt: skip
def test_what_specs_mostly_hold_is_simple(source: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert paths_of(source) == paths


@pytest.mark.parametrize(
    "source", ["$now() > a", "a[$now()]", "a[b[0]]", "`a b`", "a ?: c", "a ? b", "a = 'it\\'s'", "a.b.", "", "$f"]
)
def test_it_says_nothing_of_others(source: str) -> None:
    assert paths_of(source) is None


def test_a_long_chain_takes_time_in_proportion_to_its_length() -> None:
    assert paths_of("a" + "+a" * 1_999) == (("a",),)
    assert paths_of("a" + "+a" * 1_999 + "!") is None
    assert paths_of("$f(" + "a," * 1_990 + ")") is None
    assert paths_of("a[b" + "+b" * 1_990 + "].c") == (("a", "c"),)
    assert paths_of("a[b" + "+b" * 1_990 + "[0]].c") is None
    assert paths_of("a[0]" * 999) is None
    assert paths_of("a?b:" * 999) is None
