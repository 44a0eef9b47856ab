"""Reading YAML: what the values are, and what ends the reading."""

from __future__ import annotations

import math
from typing import Any

import pytest

from workflows.spec.errors import Path
from workflows.spec.reader import read
from workflows.spec.source import Unreadable


def tree(text: str | bytes) -> Any:
    document = read(text)
    assert document is not None
    return document.tree


def place(text: str, path: Path) -> tuple[int, int] | None:
    document = read(text)
    assert document is not None
    return document.position(path)


def refusal(data: str | bytes) -> tuple[int, int, str]:
    with pytest.raises(Unreadable) as fault:
        read(data)
    return fault.value.line, fault.value.column, fault.value.reason


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "n", "NO", "1_000", "12:30", "2026-03-04", "<<", "="])
def test_words_that_an_older_yaml_converts_stay_text(word: str) -> None:
    assert tree(f"[{word}]") == [word]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("TRUE", True), ("False", False), ("null", None), ("Null", None), ("~", None), ("", None),
        ("12", 12), ("+3", 3), ("-3", -3), ("012", 12), ("08", 8), ("0x1F", 31), ("0o17", 15), ("1.5", 1.5),
        (".5", 0.5), ("1.", 1.0), ("1e4", 10000.0), ("-2E-3", -0.002), (".inf", math.inf), ("-.INF", -math.inf),
        ("!!str 5", "5"), ("! 5", "5"), ('!!int "7"', 7), ("!!float 3", 3.0), ('"5"', "5"), ("'true'", "true"),
        ("2026-03-04T10:00:00Z", "2026-03-04T10:00:00Z"), ("-0x1F", "-0x1F"), ("tRuE", "tRuE"), ("${NAME}", "${NAME}"),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)  # fmt: skip
def test_scalars_follow_the_core_schema(written: str, value: Any) -> None:
    read_value = tree(f"a: {written}")["a"]

    assert read_value == value
    assert type(read_value) is type(value)


def test_not_a_number_is_a_float() -> None:
    assert math.isnan(tree("a: .nan")["a"])


def test_keys_are_their_text() -> None:
    assert tree("1: a\ntrue: b\n~: c\n0x1F: d\non: e\n&x 7: f\ng: *x\n") == {
        "1": "a", "true": "b", "~": "c", "0x1F": "d", "on": "e", "7": "f", "g": 7,
    }  # fmt: skip


def test_an_unquoted_template_is_a_mapping_and_not_a_crash() -> None:
    assert tree("a: {{ x }}\nb: 1") == {"a": {"{x: null}": None}, "b": 1}


def test_there_are_no_merge_keys() -> None:
    assert tree("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n") == {"a": {"x": 1}, "b": {"<<": {"x": 1}, "y": 2}}


def test_aliases_stand_for_what_they_name_and_an_anchor_may_be_set_again() -> None:
    assert tree("a: &x [1]\nb: *x\nc: &x 2\nd: *x\n") == {"a": [1], "b": [1], "c": 2, "d": 2}


def test_json_reads_the_same_with_its_escapes() -> None:
    text = '{"a": "\\ud83d\\ude00\\/\\u00e9", "b": [1, 2.5, null, true], "c": {}}'

    assert tree(text) == {"a": "😀/é", "b": [1, 2.5, None, True], "c": {}}
    assert place(text, ("b",)) == (1, text.index("[") + 1)


def test_an_escaped_pair_is_one_character_between_double_quotes_and_text_elsewhere() -> None:
    text = (
        'a: "\\ud83d\\ude00!"\nb: \'\\ud83d\\ude00\'\nc: \\ud83d\\ude00 # \\ud83d\\ude00\nd: {"\\uD83D\\uDE00x": [1]}\n'
    )

    assert tree(text) == {"a": "😀!", "b": "\\ud83d\\ude00", "c": "\\ud83d\\ude00", "d": {"😀x": [1]}}
    assert place(text, ("d", "😀x", 0)) == (4, 23)
    assert tree('"\\\\\\ud83d\\ude00"') == "\\😀"
    assert "Unicode" in refusal('a: "\\\\ud83d\\ude00"')[2]


def test_a_text_of_every_private_character_is_read_as_it_is() -> None:
    private = "".join(map(chr, range(0xE000, 0xF900)))

    assert tree(f'a: "{private}\u2028\\ud83d\\ude00"') == {"a": f"{private}\u2028😀"}


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa: 1\nb: 2\n", b"a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n".encode("utf-16")])
def test_a_byte_order_mark_and_windows_line_ends_are_fine(data: bytes) -> None:
    assert tree(data) == {"a": 1, "b": 2}


def test_characters_that_only_old_yaml_breaks_lines_at_are_ordinary() -> None:
    assert tree('a: "x\u2028y\x85z" # to the end\u2028b: 1\nc: 2') == {"a": "x\u2028y\x85z", "c": 2}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a: 1\n\t\nb: 2\n", {"a": 1, "b": 2}),
        ("a: 1\n  \t  \nb: 2\n\t", {"a": 1, "b": 2}),
        ("a:\n  - x\n \t# why\n  - y\r\n\t\r\n", {"a": ["x", "y"]}),
        ("\t# first\na: x\n\t\n  y\n", {"a": "x\ny"}),
        ("a: |\n  x\n  \t\n  y\n\t\nb: 2\n", {"a": "x\n\t\ny\n", "b": 2}),
    ],
)
def test_a_tab_on_a_line_without_content_is_no_indentation(text: str, meant: Any) -> None:
    assert tree(text) == meant


def test_tabs_are_mended_on_a_few_lines_only() -> None:
    assert tree("a: 1\n" + "\t\n" * 15) == {"a": 1}
    assert "tab" in refusal("".join(f"k{n}: 1\n\t\n" for n in range(100)))[2]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n...\n"])
def test_a_file_without_content_holds_nothing(text: str) -> None:
    document = read(text)

    assert document is None or document.tree is None


@pytest.mark.parametrize(
    ("data", "line", "column", "word"),
    [
        ("a:\n\tb: c", 2, 1, "tab"),
        (b"a: 1\nb: caf\xe9", 2, 7, "UTF-8"),
        ("a: b\nc: \x1b[31m", 2, 4, "U+001B"),
        ("a: \ud800", 1, 4, "U+D800"),
        (b"a: \x00", 1, 4, "U+0000"),
        ('a: "\\0"', 1, 4, "NUL"),
        ("a: 1\nb:\n  x: 1\n  y: 2\n  'x': 3", 5, 3, "on line 3"),
        ("on: 1\n'on': 2", 2, 1, "on line 1"),
        ("a: 1\n---\nb: 2", 2, 1, "second document"),
        ("a: *nowhere", 1, 4, "*nowhere"),
        ("a: &a [1, *a]", 1, 11, "contains itself"),
        ("a: [1", 2, 1, "expected"),
        ("a: b: c", 1, 5, "mapping values"),
        ("a: !!python/object:os.system x", 1, 4, "tag"),
        ("a: !!set {x}", 1, 4, "tag"),
        ('a: !!int "x"', 1, 4, "tag"),
        ('{"a": "\\ud83d"}', 1, 10, "Unicode"),
        ("%YAML 3.0\n---\na: 1", 1, 1, "incompatible"),
    ],
)
def test_it_says_where_and_why_it_stopped(data: str | bytes, line: int, column: int, word: str) -> None:
    found_line, found_column, reason = refusal(data)

    assert word in reason
    assert (found_line, found_column) == (line, column)


def test_the_value_of_every_path_has_its_place() -> None:
    text = "a: 1\nb:\n  - x: &x\n      k: v\n  - y: *x\nc: {d: [e, {f: g}]}\n"

    places = {
        (): (1, 1), ("a",): (1, 4), ("b", 0, "x"): (3, 8), ("b", 0, "x", "k"): (4, 10), ("b", 1): (5, 5),
        ("b", 1, "y"): (5, 8), ("b", 1, "y", "k"): (4, 10), ("c", "d", 1, "f"): (6, 16),
    }  # fmt: skip
    assert {path: place(text, path) for path in places} == places


@pytest.mark.parametrize("path", [("z",), ("a", "z"), ("b", 9), ("b", -1), ("b", "x"), (0,)])
def test_what_is_not_in_the_document_has_no_place(path: Path) -> None:
    assert place("a: 1\nb: [x]", path) is None
