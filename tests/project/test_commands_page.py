"""The page of commands names every command of ours and every act that it can do."""

from __future__ import annotations

from argparse import _SubParsersAction

import pytest
from django.core.management import get_commands, load_command_class

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
OURS = {name: str(app) for name, app in get_commands().items() if app in ("workflows", "approvals", "statestore")}


def acts() -> list[str]:
    """`run_spec`, `runs list`, `runs show` ...: each way to call one of our commands."""
    found = []
    for name, app in sorted(OURS.items()):
        parser = load_command_class(app, name).create_parser("manage.py", name)
        parts = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
        found += [f"{name} {verb}" for part in parts for verb in part.choices] or [name]
    return found


def test_there_are_commands_to_look_for() -> None:
    assert {"serve", "run_spec", "approvals approve", "runs give_up", "audit verify"} <= set(acts())


@pytest.mark.parametrize("act", acts())
def test_every_act_stands_on_the_page(act: str) -> None:
    assert f"`{act}" in PAGE
