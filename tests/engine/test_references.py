"""Environment references and 1.0 placeholders (engine semantics 9, 10.4, 14.1)."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.engine.strategies import hostile_texts, json_values
from workflows.engine.references import Ref, Text, author, author10, fill10, fill10_tree
from workflows.engine.values import NOTHING, Json, Outputs


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain $5 {x} ${} ${1A} $NAME ${A-B} ${A", ("plain $5 {x} ${} ${1A} $NAME ${A-B} ${A",)),
        ("${KEY}", (Ref("KEY"),)),
        ("Bearer ${_k9}!", ("Bearer ", Ref("_k9"), "!")),
        ("${A}${B}", (Ref("A"), Ref("B"))),
        ("$${KEY}", ("${KEY}",)),
        ("a$${KEY}b${KEY}", ("a${KEY}b", Ref("KEY"))),
        ("$$${KEY}", ("$${KEY}",)),
        ("$$ ${Ä}", ("$$ ${Ä}",)),
    ],
)
def test_an_author_refers_to_the_environment(text: str, parts: tuple[str | Ref, ...]) -> None:
    assert author(text) == Text(parts)


def test_a_text_with_references_shows_them_and_resolves_them_verbatim() -> None:
    text = author("${A}-${B}-${A}-$${B}")
    assert text.refs == ("A", "B")
    assert text.shown() == "${A}-${B}-${A}-${B}"
    assert text.resolve({"A": "${B}", "B": "$${A} {input}"}) == "${B}-$${A} {input}-${B}-${B}"


OUTPUTS: Outputs = {
    "s": {"n": 3.0, "t": "hi", "b": True, "z": None, "l": [1], "m": {"x": 1}, "e": "", "odd.key": "dotted"},
    "list": ["zero", 1, None, [2]],
    "word": "whole",
    "flag": False,
    "gone": NOTHING,
    "input": "a step of that name",
    "re-port": {"x": 1},
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{input} {{input}} {{ input }} {{\n input\t}}", "raw raw raw raw"),
        ("{s.n} {{ s.t }} {s.b} [{s.e}]", "3 hi true []"),
        ("{word} {flag} {list.0} {list.1}", "whole false zero 1"),
        ("{s.odd.key}", "dotted"),
        ("{s.z} {s.l} {s.m} {s.nope} {s} {list}", "{s.z} {s.l} {s.m} {s.nope} {s} {list}"),
        ("{s.m.x} {{ s.l.0 }} {list.3} {list.9} {list.01}", "{s.m.x} {{ s.l.0 }} {list.3} {list.9} {list.01}"),
        (
            "{gone} {{ gone.x }} {nope} {trigger.id} {{ vars.x }}",
            "{gone} {{ gone.x }} {nope} {trigger.id} {{ vars.x }}",
        ),
        ("{re-port.x} { input } {} {{}} {.} {s.} {..}", "{re-port.x} { input } {} {{}} {.} {s.} {..}"),
        ("{list." + "1" * 5_000 + "}", "{list." + "1" * 5_000 + "}"),
        ("{{{input}}} {{input} {input}}", "{raw} {raw raw}"),
        ("${input} $${input} ${s.n} ${{ input }}", "${input} $${input} $3 $raw"),
    ],
)
def test_a_placeholder_is_one_flat_look_up(text: str, filled: str) -> None:
    assert fill10(text, OUTPUTS, "raw") == filled


def test_an_inserted_text_is_not_scanned_again() -> None:
    outputs: Outputs = {"s": {"x": "{input} {{ s.y }} ${KEY}", "y": "no"}}
    assert fill10("{s.x}", outputs, "no") == "{input} {{ s.y }} ${KEY}"
    assert author10("{s.x}", outputs, "no") == Text(("{input} {{ s.y }} ${KEY}",))


def test_placeholders_and_references_are_found_in_one_pass() -> None:
    text = author10("{input}: Bearer ${KEY} $${KEY} ${s.n} {nope}", OUTPUTS, "${KEY}")
    assert text == Text(("${KEY}: Bearer ", Ref("KEY"), " ${KEY} $3 {nope}"))


@given(hostile_texts, hostile_texts, hostile_texts)
def test_data_in_a_1_0_text_adds_no_reference_and_arrives_unchanged(before: str, data: str, after: str) -> None:
    text = f"{before} {{input}} {after}"
    plain = author10(text, {}, "PLAIN")
    assert "PLAIN" in plain.shown()
    expected = (part.replace("PLAIN", data) if isinstance(part, str) else part for part in plain.parts)
    assert author10(text, {}, data) == Text.of(expected)


def test_a_tree_is_filled_leaf_by_leaf_and_never_in_its_keys() -> None:
    tree = {"{input}": "{input}", "list": ["${KEY}", {"k": "{s.n}"}], "n": 5, "none": None, "name": "{input}"}
    assert fill10_tree(tree, OUTPUTS, "raw", frozenset({"name"})) == {
        "{input}": Text(("raw",)),
        "list": [Text((Ref("KEY"),)), {"k": Text(("3",))}],
        "n": 5,
        "none": None,
        "name": "{input}",
    }


def test_only_the_top_level_is_skipped() -> None:
    filled = fill10_tree({"body": {"name": "{input}"}}, {}, "raw", frozenset({"name"}))
    assert filled == {"body": {"name": Text(("raw",))}}


@given(json_values(hostile_texts))
def test_equal_texts_compare_equal_however_they_were_cut(value: Json) -> None:
    text = str(value)
    assert Text.of(text) == Text.of((text,)) == Text.of(("", text, ""))
