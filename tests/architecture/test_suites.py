"""Suites that run on one database only must not know any."""

from __future__ import annotations

import ast

from tests.conftest import ROOT
from tests.run import WITHOUT_DATABASE

FIXTURES = {"db", "transactional_db", "process_env", "manage", "people", "live_server"}
MARK = "django_" + "db"


def test_suites_that_run_once_use_no_database() -> None:
    found = []
    for folder in WITHOUT_DATABASE:
        for file in sorted((ROOT / folder).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                marked = isinstance(node, ast.Attribute) and node.attr == MARK
                asked = isinstance(node, ast.arg) and node.arg in FIXTURES
                if marked or asked:
                    found.append(f"{file.relative_to(ROOT)}: {ast.unparse(node)}")
    assert not found
