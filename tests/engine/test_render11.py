"""Templates of a 1.1 spec: collecting, filling, and data that is never read again (engine semantics 10)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.strategies import hostile_texts, json_values
from workflows.engine import jsontext
from workflows.engine.references import Ref, Text
from workflows.engine.render11 import (
    Data,
    collect,
    fill,
    fill_plain,
    marked,
    refs,
    resolved,
    shown,
    text_of,
)
from workflows.engine.values import Json

TOOL = {
    "name": "{{ a }}",
    "url": "https://x.test/{{ b }}?k=${KEY}",
    "headers": {"{{ key }}": "{{ c }}", "Authorization": "Bearer ${TOKEN}"},
    "body": {"json": {"name": "{{ d }}", "rows": [1, None, "{{ e }}-{{ f }}"]}},
}
SKIP = frozenset({"name"})


def test_it_lists_every_expression_in_order_but_not_those_of_keys_and_skipped_entries() -> None:
    assert collect(TOOL, SKIP) == (" b ", " c ", " d ", " e ", " f ")
    assert collect("{{ x }}") == (" x ",)
    assert collect(["no", 5, None, {"a": "{ x }"}]) == ()


def test_it_puts_each_value_in_its_place() -> None:
    filled = fill(TOOL, ["${B}", 3.0, {"k": "${D}"}, True, None], SKIP)
    assert filled == {
        "name": "{{ a }}",
        "url": Text(("https://x.test/${B}?k=", Ref("KEY"))),
        "headers": {"{{ key }}": Data(3.0), "Authorization": Text(("Bearer ", Ref("TOKEN")))},
        "body": {"json": {"name": Data({"k": "${D}"}), "rows": [1, None, Text(("true-null",))]}},
    }
    assert refs(filled) == ("KEY", "TOKEN")


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("", [], Text(())),
        ("plain", [], Text(("plain",))),
        ("{{ n }}", [None], Data(None)),
        (" {{ n }}", [3.0], Text((" 3",))),
        ("{{ n }} ", [[1.0, {"k": "é"}]], Text(('[1,{"k":"é"}] ',))),
        ("{{ n }}{{ n }}", [3, 3], Text(("33",))),
        ("{{ n }} then {{ n", [3], Text(("3 then {{ n",))),
        ("{x} $${KEY} {{ n }}", ["{x}"], Text(("{x} ${KEY} {x}",))),
    ],
)
def test_one_expression_alone_keeps_its_type_and_all_else_is_text(text: str, values: list[Json], result: Json) -> None:
    assert fill(text, values) == result


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]])
def test_another_number_of_values_than_expressions_is_a_bug_of_the_caller(values: list[Json]) -> None:
    with pytest.raises(ValueError, match="values than expressions"):
        fill("{{ a }} {{ b }}", values)


def test_a_reference_cannot_be_put_together_around_a_value() -> None:
    assert fill("${{{ a }}}", ["KEY"]) != Text((Ref("KEY"),))
    assert refs(fill(["$", "{{ a }}", "${K{{ a }}", "$${{ a }}{KEY}"], ["{KEY}", "EY}", "$"])) == ()


@given(json_values(hostile_texts))
def test_data_arrives_unchanged_whatever_it_contains(value: Json) -> None:
    filled = fill({"alone": "{{ x }}", "inside": "<{{ x }}|${KEY}>"}, [value, value])
    answer = resolved(filled, {"KEY": "secret"})
    assert jsontext.same(answer["alone"], value)
    assert answer["inside"] == f"<{jsontext.as_text(value)}|secret>"
    assert refs(filled) == ("KEY",)


def test_a_query_or_a_message_has_no_references_at_all() -> None:
    assert (
        fill_plain("Pay ${KEY} $${KEY} {{ n }} to {{ who }}?", [12.5, "${KEY}"]) == "Pay ${KEY} $${KEY} 12.5 to ${KEY}?"
    )
    assert fill_plain("{{ n }}", [{"a": 1.0}]) == '{"a":1}'


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Text(("a", Ref("K"))), Text(("a", Ref("K")))),
        (Data("${K}"), Text(("${K}",))),
        (Data(3.0), Text(("3",))),
        (Data(True), Text(("true",))),
        (Data(None), Text(("null",))),
        (Data([1, "é"]), Text(('[1,"é"]',))),
        ("as it was", Text(("as it was",))),
    ],
)
def test_where_text_is_needed_a_value_becomes_text(node: Any, text: Text) -> None:
    assert text_of(node) == text


def test_people_are_shown_references_and_data() -> None:
    assert shown(fill(TOOL, ["b", 3.0, {"k": 1}, True, None], SKIP)) == {
        "name": "{{ a }}",
        "url": "https://x.test/b?k=${KEY}",
        "headers": {"{{ key }}": 3.0, "Authorization": "Bearer ${TOKEN}"},
        "body": {"json": {"name": {"k": 1}, "rows": [1, None, "true-null"]}},
    }


def test_the_marked_form_tells_a_reference_from_data_that_looks_like_one() -> None:
    reference, data, escaped = fill(["${KEY}", "{{ x }}", "$${KEY}"], ["${KEY}"])
    assert shown(reference) == shown(data) == shown(escaped)
    assert marked(reference) != marked(data) == marked(escaped)
    assert marked(reference) == {"text": [{"env": "KEY"}]}


nodes = st.recursive(
    st.lists(hostile_texts | st.builds(Ref, st.sampled_from(["KEY", "B"])), max_size=3).map(Text.of)
    | st.builds(Data, json_values(st.sampled_from(["text", "map", "env", "KEY", "${KEY}"]))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "map", "env"]), inner),
    max_leaves=5,
)


@given(nodes, nodes)
def test_nodes_with_one_marked_form_give_one_request(a: Json, b: Json) -> None:
    if jsontext.canonical(marked(a)) == jsontext.canonical(marked(b)):
        env = {"KEY": "first", "B": "second"}
        assert jsontext.same(resolved(a, env), resolved(b, env))


@given(json_values(st.sampled_from(["text", "map", "env", "KEY"])))
def test_no_data_can_take_the_marked_form_of_a_reference(value: Json) -> None:
    assert not jsontext.same(marked(Data(value)), marked(Text((Ref("KEY"),))))
