"""The spec hash: what counts and what does not."""

from __future__ import annotations

import re

import pytest

from workflows.spec.hashing import canonical
from workflows.spec.load import load

SPEC = """\
version: "1.1"
vars:
  limit: {type: number, default: 2.5}
agent:
  id: garden
  name: Garden
  role: Clerk
  goal: Water
  model: {provider: ollama, name: m, timeout_ms: 30000}
  workflow:
    - step: judge
      action: decide
      query: "How dry?"
      temperature: 1
"""


def spec_hash(text: str) -> str:
    return load(text).hash


def test_it_is_a_sha_256_in_hex() -> None:
    assert re.fullmatch("[0-9a-f]{64}", spec_hash(SPEC))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("vars:", "# the limits\nvars: # here"),
        ('query: "How dry?"', "query: How dry?"),
        ('query: "How dry?"', "query: >-\n        How\n        dry?"),
        ("step: judge\n      action: decide", "action: decide\n      step: judge"),
        ("{type: number, default: 2.5}", "\n    default: 25e-1\n    type: 'number'"),
        ("30000", "3e4"),
        ("30000", "30000.0"),
        ("30000", "0x7530"),
        ("\n", "\r\n"),
    ],
)
def test_comments_layout_order_and_spelling_change_nothing(old: str, new: str) -> None:
    assert old in SPEC
    assert spec_hash(SPEC.replace(old, new)) == spec_hash(SPEC)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("How dry?", "How dry? "),
        ("2.5", "2.6"),
        ("limit:", "limits:"),
        ("temperature: 1", "temperature: '1'"),
        ("temperature: 1", "temperature: true"),
        ("temperature: 1", "temperature: null"),
        ("temperature: 1", "temperature: 1\n      unknown: 1"),
        ("temperature: 1", "temperature: 1\n      confidence_gate: false"),
        ("30000", "30001"),
        ('"1.1"', '"1.0"'),
    ],
)
def test_any_value_counts_also_unknown_keys_and_written_defaults(old: str, new: str) -> None:
    assert old in SPEC
    assert spec_hash(SPEC.replace(old, new)) != spec_hash(SPEC)


def test_a_list_has_an_order() -> None:
    assert spec_hash("[1, 2]") != spec_hash("[2, 1]")


def test_an_alias_counts_as_what_it_stands_for() -> None:
    assert spec_hash("a: &x {k: 1}\nb: *x") == spec_hash("a: {k: 1}\nb: {k: 1}")


def test_a_refused_file_has_a_hash_as_long_as_it_is_yaml() -> None:
    assert spec_hash("agent: {}")
    assert spec_hash("a: [") == ""
    assert spec_hash("") == ""


def test_the_canonical_text_is_json_with_sorted_keys_and_numbers_by_value() -> None:
    tree = {"b": [1.0, -0.0, 1e21, 0.1, True, None], "a": {"é": '"\u2028', "Z": 10**30}}

    assert canonical(tree) == (
        '{"a":{"Z":1000000000000000000000000000000,"é":"\\"\u2028"},"b":[1,0,1000000000000000000000,0.1,true,null]}'
    )
