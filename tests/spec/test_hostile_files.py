"""Files that were made to hang or fill a reader: each ends in an error with a place, at once."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.spec.specs import errors, spec
from workflows.spec.load import load

ALIAS_BOMB = "a0: &a0 [lol]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
LONG_TEXT_BOMB = "a: &a " + "x" * 1_000_000 + "\nb: [" + ", ".join(["*a"] * 1000) + "]\n"
CHAIN_OF_NESTING = "".join(f"a{n}: &a{n} {'[' * 150}{f'*a{n - 1}' if n else 'x'}{']' * 150}\n" for n in range(5))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(ALIAS_BOMB, 4, id="aliases that multiply"),
        pytest.param(LONG_TEXT_BOMB, 2, id="aliases of a long text"),
        pytest.param(CHAIN_OF_NESTING, 2, id="aliases that nest"),
        pytest.param("a: &a [*a]", 1, id="an alias that contains itself"),
        pytest.param("[" * 10_000, 1, id="brackets without end"),
        pytest.param("[" * 201 + "]" * 201, 1, id="nested over 200"),
        pytest.param("- " * 100_000, 1, id="lists in lists"),
        pytest.param("{" * 190 + "x" + "}" * 190, 1, id="mappings as keys of mappings"),
        pytest.param("a: " + "1" * 100_000, 1, id="a number of 100,000 digits"),
        pytest.param("".join(f"%TAG !a{n}! x\n" for n in range(100_000)) + "---\na: 1", 1, id="tag directives"),
        pytest.param("a: " + "x" * 5_000_000, 1, id="over 4 MiB"),
        pytest.param(("a: " + "語" * 1_500_000).encode("utf-16"), 1, id="over 4 MiB when stored as UTF-8"),
        pytest.param("k" * 2_000_000 + ": x", 1, id="a key of two million characters"),
    ],
)
def test_it_is_refused_at_once(text: str | bytes, line: int) -> None:
    before = time.process_time()

    error = errors(text)[0]

    assert time.process_time() - before < 1
    assert error.path == ()
    assert error.line == line
    assert f"line {line}" in error.message


def test_an_alias_bomb_takes_no_memory() -> None:
    load(ALIAS_BOMB)
    tracemalloc.start()
    try:
        load(ALIAS_BOMB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 5_000_000


def test_200_nested_lists_and_a_flat_crowd_of_aliases_are_fine() -> None:
    assert load("[" * 200 + "]" * 200).hash
    assert load("a: &a x\nb: [" + ", ".join(["*a"] * 300) + "]\n").hash


def test_an_honest_large_spec_is_judged_by_its_size_alone() -> None:
    steps = "".join(f"    - step: s{n}\n      action: do it\n      query: {'look ' * 20}\n" for n in range(5_000))

    loaded = load(spec("  workflow:\n" + steps))

    assert loaded.errors == ()
    assert loaded.spec is not None
    assert len(loaded.spec.agent.workflow) == 5_000


def test_thousands_of_wrong_names_do_not_multiply_into_the_messages() -> None:
    steps = "".join(f'    - {{step: s{n}, action: a, query: "{{{{ nobody{n} }}}}"}}\n' for n in range(3_000))

    found = errors(spec("  workflow:\n" + steps))

    assert len(found) == 1001
    assert "2000 more" in found[-1].message
    assert all(len(error.message) < 2_000 for error in found)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 1999 + "1" + ")" * 1999, id="nested brackets"),
        pytest.param("1" + "+1" * 1999, id="a chain of operators"),
        pytest.param("(" * 600 + "a" + " ?? b)" * 550, id="nested alternatives"),
        pytest.param("a" + ".a" * 1999, id="a path of 2,000 steps"),
        pytest.param("-" * 3999 + "1", id="minus signs"),
        pytest.param("/" + "(a+)+" * 700 + "/", id="a regular expression"),
    ],
)
def test_an_expression_that_is_deep_or_long_takes_no_time(expression: str) -> None:
    before = time.process_time()

    load(spec(f"  workflow:\n    - {{step: s, type: condition, if: '{expression}', then: x, else: y}}\n"))

    assert time.process_time() - before < 1


def test_loading_stops_at_ten_thousand_errors() -> None:
    found = errors(spec("  workflow: [" + "{}," * 20_000 + "]\n"))

    assert len(found) == 1001
    assert "at least 9000 more" in found[-1].message


def test_values_that_aliases_repeat_count_as_often_as_they_are_repeated() -> None:
    shared = "shared: &x [" + "1," * 140_000 + "]\n"

    assert load(shared + "b: [*x]").errors[0].path != ()
    assert "300000 values" in errors(shared + "b: [*x, *x]")[0].message


def test_an_expression_is_judged_once_however_often_aliases_repeat_it() -> None:
    texts = ",".join(f'"{{{{ trigger[x={n}].c }}}}"' for n in range(1_500))
    steps = "".join(f"    - {{step: s{n}, action: a, inputs: *x}}\n" for n in range(1, 60))
    text = spec(f"  workflow:\n    - {{step: s0, action: a, inputs: &x [{texts}]}}\n{steps}")
    before = time.process_time()

    assert load(text).errors == ()

    assert time.process_time() - before < 5
