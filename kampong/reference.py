"""Writes `docs/settings.md` out of the settings table and the checks: `python -m kampong.reference`."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import django

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

INTRODUCTION = """# Settings and checks

This page is written by `make format` from the table in the code; a test keeps the two equal.

Everything is set in the environment. A name that begins with `KAMPONG_` and is not listed here is refused, with the
name that was probably meant. Lists take colons or commas; yes and no are `1` and `0`; times are seconds.
In another Django project the same names go into its settings module."""


def shown(value: Any) -> str:
    """A default as one would type it into the environment."""
    if value is True or value is False:
        return str(int(value))
    if isinstance(value, float):
        return f"{value:g}" if value < 1e6 else f"{value:.0f}"
    if isinstance(value, list):
        return ",".join(value) or "(empty)"
    return str(value) if value != "" else "(empty)"


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
    lines += [f"| `kampong.{code}` | {promise} |" for code, promise in check_promises(checks)]
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
