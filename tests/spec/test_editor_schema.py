"""The schema for editors: valid, fresh, and of one mind with loading wherever a schema can be."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kampong.reference import SCHEMA
from tests.conftest import ROOT
from tests.counts import count
from tests.spec.mutations import mutated, seeds
from workflows.spec import agent_shapes, editor_rules, editor_schema, step_shapes, tool_shapes
from workflows.spec.key_texts import TEXTS
from workflows.spec.key_texts12 import TEXTS as TEXTS_12
from workflows.spec.load import load
from workflows.spec.reader import read
from workflows.spec.source import Unreadable

CASES: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/cases/spec-cases.yaml").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
MADE = editor_schema.schema()
#: What a schema cannot say; each is matched against the message of loading.
NOT_EXPRESSED = (
    "condition of step",  # expressions
    r"\{\{",
    "looks like a secret",  # a component's config: the word may stand anywhere in the variable's name
    '"list of ',  # the items of a list default, by a key beside it
    "infinite number",  # JSON has none
    "regular expression",  # a schema knows another dialect, or none
    '"path" is not a path',  # a newline at the end: `$` of most dialects lets it pass
)


def faults(tree: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(MADE).iter_errors(tree)]


def tree_of(text: str | bytes) -> Any:
    try:
        document = read(text)
    except Unreadable:
        return None
    return None if document is None else document.tree


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft7Validator.check_schema(MADE)


def test_the_file_is_fresh() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == editor_schema.text(), "stale: run `make format`"


def test_every_key_has_its_text_and_no_text_is_left_over() -> None:
    agent = agent_shapes.agent(tool_shapes.tool, step_shapes.STEPS)
    for name, definition in MADE["definitions"].items():
        assert all(part.get("description") for part in definition["properties"].values()), name
    keys = {"document": set(agent_shapes.document(agent).keys), "body": {*tool_shapes.ENCODINGS, "content_type"}}
    for name, definition in MADE["definitions"].items():
        keys.setdefault(name, set(definition["properties"]))
    for name, told in TEXTS.items():
        assert set(told) == keys[name.replace(" ", "_")], name
    for name, told in TEXTS_12.items():
        assert set(told) <= keys[_there(name)], name
    named = {f"{name}.{key}" for name, told in TEXTS.items() for key in told}
    assert set(editor_rules.BESIDES) <= named
    assert set(editor_rules.ALSO) <= {*TEXTS, *TEXTS_12}


def _there(name: str) -> str:
    """The definition of a mapping that only 1.2 has."""
    return f"{name.replace(' ', '_')}_1.2"


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_it_accepts_what_loads_and_refuses_what_does_not(case: dict[str, Any]) -> None:
    tree = tree_of(case["yaml"])
    if tree is None:
        return  # no YAML: an editor says so without a schema
    if case["valid"]:
        assert faults(tree) == []
    elif not faults(tree):
        errors = load(case["yaml"]).errors
        assert all(any(re.search(words, error.message) for words in NOT_EXPRESSED) for error in errors), errors


def test_it_accepts_every_mutated_spec_that_loads() -> None:
    texts, accepted = seeds(), 0
    for number in range(count(300, 10_000)):
        data = mutated(random.Random(f"editor {number}"), texts)
        if load(data).spec is not None:
            accepted += 1
            tree = tree_of(data)
            assert faults(tree) == [], data
    assert accepted > count(20, 600)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_names_it_in_its_first_line(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    pragma = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)

    assert pragma is not None
    assert (example.parent / pragma[1]).resolve() == SCHEMA
    assert faults(tree_of(text)) == []
