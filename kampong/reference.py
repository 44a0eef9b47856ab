"""Writes what is made out of the code, `docs/settings.md` and the editor's schema: `python -m kampong.reference`."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import django

from workflows.spec import editor_schema

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
#: Beside the code, so that a package carries it.
SCHEMA = ROOT / "workflows" / "spec" / "agentspec.schema.json"

INTRODUCTION = """# Settings and checks

This page is written by `make format` from the table in the code; a test keeps the two equal.

Everything is set in the environment. A name that begins with `KAMPONG_` and is not listed here is refused, with the
name that was probably meant. Lists take colons or commas; yes and no are `1` and `0`; times are seconds.
In another Django project the same names go into its settings module."""

# The store's checks make several findings each, so their docstrings cannot carry one promise for each id.
STORE_CHECKS = {
    "statestore.E001": "SQLite is used through the store's own backend, which is fair to concurrent writers.",
    "statestore.E002": "No option lies outside `OPTIONS`, where Django would not read it.",
    "statestore.E003": "No request holds a transaction from its start to its end.",
    "statestore.E004": "Stored times are instants (`USE_TZ`).",
    "statestore.E005": "`KAMPONG_SQLITE_SYNCHRONOUS` is `FULL` or `NORMAL`.",
    "statestore.E006": "SQLite's times are in UTC.",
    "statestore.E007": "A settings module names only settings that exist.",
    "statestore.E010": "The live SQLite connection keeps its journal in WAL mode.",
    "statestore.E011": "The live SQLite connection writes as safely as the setting says.",
    "statestore.E012": "The live SQLite connection waits for a lock for at least 5 s.",
    "statestore.E013": "The live SQLite connection takes the write lock when a transaction begins.",
    "statestore.E014": "The live SQLite connection enforces foreign keys.",
    "statestore.E015": "SQLite is recent enough for deletes that return what they deleted.",
    "statestore.E016": "PostgreSQL is recent enough.",
    "statestore.E017": "PostgreSQL's database is in UTF-8.",
    "statestore.E018": "PostgreSQL sorts keys byte by byte, so that no key is missed in a list by prefix.",
    "statestore.E019": "The database is SQLite or PostgreSQL.",
    "statestore.W001": "The database is a file, not a memory that ends with its process.",
}


def shown(value: Any) -> str:
    """A default as one would type it into the environment."""
    if value is True or value is False:
        return str(int(value))
    if isinstance(value, float):
        return f"{value:g}" if value < 1e6 else f"{value:.0f}"
    if isinstance(value, list):
        return ",".join(value) or "(empty)"
    return str(value) if value not in ("", {}) else "(empty)"


def _row(name: str, default: str, help_text: str) -> str:
    return f"| `{name}` | {default if default.startswith('(') else f'`{default}`'} | {help_text.replace('|', ' ')} |"


def page() -> str:
    """The whole page. Django must be set up, so that every app has declared its settings and checks."""
    from kampong import checks
    from kampong.conf import USUAL
    from statestore.conf import table

    head = ["| name | default | what it does |", "| --- | --- | --- |"]
    lines = [INTRODUCTION, "", "## Settings", "", *head]
    lines += [_row(row.name, shown(row.default), row.help) for row in table()]
    lines += ["", "## Usual names", "", *head]
    lines += [_row(row.name, row.default, row.help) for row in USUAL]
    lines += [
        "",
        "## Checks",
        "",
        "`python manage.py check` runs them; those that ask the database need `--database default`. Each finding comes "
        "with a hint that names the setting to change.",
        "",
        "| id | what it guards |",
        "| --- | --- |",
    ]
    promises = {f"kampong.{code}": promise for code, promise in check_promises(checks)} | STORE_CHECKS
    lines += [f"| `{code}` | {promise} |" for code, promise in sorted(promises.items())]
    return "\n".join(lines) + "\n"


def check_promises(module: Any) -> list[tuple[str, str]]:
    """Each check's id and promise, from its docstring (`E001: ...`), by id."""
    found = []
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("check_") and function.__module__ == module.__name__:
            match = re.fullmatch(r"([EW]\d{3}): (.+)", (inspect.getdoc(function) or "").partition("\n")[0])
            if match is None:
                raise ValueError(f"the docstring of {name} must begin with its id and a colon")
            found.append((match[1], match[2][0].upper() + match[2][1:]))
    return sorted(found)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(editor_schema.text(), encoding="utf-8")
