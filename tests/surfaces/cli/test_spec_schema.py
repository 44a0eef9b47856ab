"""`spec_schema`: the schema for editors, and nothing else, on stdout."""

from __future__ import annotations

import json

import pytest

from tests.surfaces.cli.running import command
from workflows.spec import editor_schema

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all


def test_it_prints_the_schema_that_lies_in_the_tree() -> None:
    told = command("spec_schema")

    assert (told.code, told.err) == (0, "")
    assert told.out == editor_schema.text()
    assert json.loads(told.out)["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_it_takes_no_arguments() -> None:
    assert command("spec_schema", "examples").code == 64
