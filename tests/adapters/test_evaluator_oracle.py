"""Our JSONata beside two others: jsonata-js, whose answers are kept in a file, and jsonatapy, asked as the test runs.

`jsonata_js_answers.jsonl` holds 1,000 expressions of expressions_generated, more about null, functions handed to
functions, texts, numbers and dates, and what jsonata-js 2.2.2 says to each: a value, an error's code, or neither for
nothing. Infinity and NaN, which are not JSON, stand there as errors.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.adapters.expressions_generated import DOCUMENT, Source
from tests.conftest import ROOT
from tests.counts import count
from workflows.adapters.evaluator import Evaluator
from workflows.engine.effects import Evaluate, Evaluated
from workflows.engine.jsontext import same
from workflows.engine.values import NOTHING

ANSWERS: Final = Path(__file__).with_name("jsonata_js_answers.jsonl")
#: One answer: {"value": ...}, {"error": ...}, or {} for nothing.
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A class of differences, found by its source and by our answer, with an example of it.

    `docs/specs.md` tells the authors of specs about those in which we are not as jsonata-js is.
    """

    source: str = ""
    ours: str = ""
    example: str

    def has(self, source: str, ours: Answer) -> bool:
        return bool(re.search(self.source, source) and re.search(self.ours, str(ours.get("error", ""))))


NO_NUMBER = Difference(
    ours=r"a number is out of range|\$round to", example="[n / z, n % z]"
)  # Infinity and NaN are not JSON: we refuse them where they arise, others go on with them
#: From jsonata-js, each our own choice.
FROM_JSONATA_JS: Final = {
    "a quotient by zero": NO_NUMBER,
    "bytes of a text outside Latin-1": Difference(source=r"\$base64", example="$base64encode(w)"),
    "characters outside the basic plane": Difference(source=r"\$split\(.*''\)", example="$split(w, '')"),
    "days and years that are none": Difference(source=r"02-30|1e15", example="$toMillis('2026-02-30')"),
    "items picked by a list of positions": Difference(source=r"\[\[", example="(items.tags)[[0..1]]"),
}
#: From jsonatapy: our own choice first; in the others it differs from jsonata-js, and we do not.
FROM_JSONATAPY: Final = {
    "a quotient by zero": NO_NUMBER,
    "a list beyond our limit": Difference(ours="a list of more than", example="[0..200000]"),
    "characters that a URL may hold": Difference(source=r"\$encodeUrl", example="$encodeUrlComponent('a.b-c')"),
    "a fraction in another base": Difference(source=r"\$formatBase", example="$formatBase(f, 2)"),
    "a reduction of nothing": Difference(source=r"\$reduce", example="$reduce(none, function($a, $b){$a & $b})"),
    "a number with blanks": Difference(source=r"\$number\((\$pad|' )", example="$number(' 42')"),
    "what binds tighter than a question mark": Difference(source=r"\?\? neg\.\.", example="[z + z ?? neg..3]"),
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Callable[[str], Answer]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.oracle_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    to, back = child.stdin, child.stdout

    def ask(source: str) -> Answer:
        to.write(json.dumps({"source": source, "scope": DOCUMENT}) + "\n")
        to.flush()
        answer: Answer = json.loads(back.readline())
        return answer

    yield ask
    child.communicate()


def our_answer(evaluator: Evaluator, source: str) -> Answer:
    outcome = evaluator.evaluate(Evaluate(sources=(source,), scope=DOCUMENT))
    if not isinstance(outcome, Evaluated):
        return {"error": outcome.reason}
    (value,) = outcome.values
    return {} if value is NOTHING else {"value": value}


def agree(ours: Answer, theirs: Answer) -> bool:
    """Errors are not compared beyond that there is one: their words and codes are each engine's own."""
    if ours.keys() != theirs.keys():
        return False
    return "value" not in ours or same(ours["value"], theirs["value"])


def unexplained(source: str, ours: Answer, theirs: Answer, known: dict[str, Difference]) -> str | None:
    if agree(ours, theirs) or any(difference.has(source, ours) for difference in known.values()):
        return None
    return f"{source}\n    ours {ours}\n    theirs {theirs}"


def test_it_answers_as_jsonata_js_but_for_the_known_differences(evaluator: Evaluator) -> None:
    lines = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 1100

    found = [
        unexplained(line.pop("source"), our_answer(evaluator, source), line, FROM_JSONATA_JS)
        for line in lines
        for source in [line["source"]]
    ]

    assert list(filter(None, found)) == []


def test_it_answers_as_jsonatapy_but_for_the_known_differences(
    evaluator: Evaluator, oracle: Callable[[str], Answer]
) -> None:
    found, made = [], 0
    for seed in range(count(1, 20)):
        expressions = Source(seed)
        for _ in range(count(400, 1_000)):
            source = expressions.one()
            made += 1
            found.append(unexplained(source, our_answer(evaluator, source), oracle(source), FROM_JSONATAPY))

    assert list(filter(None, found)) == []
    assert made == count(400, 20_000)


def test_most_generated_expressions_have_a_value(evaluator: Evaluator) -> None:
    expressions = Source(0)
    answers = [our_answer(evaluator, expressions.one()) for _ in range(200)]

    assert sum("value" in answer for answer in answers) > 140


@pytest.mark.parametrize("name", FROM_JSONATAPY)
def test_each_known_difference_from_jsonatapy_is_still_one(
    evaluator: Evaluator, oracle: Callable[[str], Answer], name: str
) -> None:
    difference = FROM_JSONATAPY[name]
    ours = our_answer(evaluator, difference.example)

    assert not agree(ours, oracle(difference.example))
    assert difference.has(difference.example, ours)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("a quotient by zero", {"error": "a number is out of range (a division by zero?)"}),
        ("bytes of a text outside Latin-1", {"value": "YfCfmIBi"}),
        ("characters outside the basic plane", {"value": ["a", "😀", "b"]}),
        ("items picked by a list of positions", {"value": ["a", "b"]}),
        (
            "days and years that are none",
            {"error": "a value does not fit the operation (day is out of range for month)"},
        ),
    ],
)
def test_each_known_difference_from_jsonata_js_is_our_answer(evaluator: Evaluator, name: str, ours: Answer) -> None:
    difference = FROM_JSONATA_JS[name]

    assert our_answer(evaluator, difference.example) == ours
    assert difference.has(difference.example, ours)
