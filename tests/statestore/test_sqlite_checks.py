"""The live SQLite connection is what the checks promise, and each difference is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper as DjangosOwn
from pytest_django import Settings

from statestore import checks
from statestore.sqlite import pool
from statestore.sqlite.base import DatabaseWrapper
from tests.statestore.test_checks import ids

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(tmp_path: Path) -> Any:
    """`live(options)`: what the check says of a fresh connection after `spoil` was run on it."""

    def check(spoil: str = "", engine: Any = DatabaseWrapper, options: dict[str, Any] | None = None) -> list[str]:
        config = connections["default"].settings_dict
        wrapper = engine({**config, "NAME": str(tmp_path / "state.db"), "OPTIONS": options or {}}, alias="other")
        with wrapper.cursor() as cursor:
            cursor.execute(spoil or "SELECT 1")
            cursor.fetchall()
        connections["other"] = wrapper
        try:
            return ids(checks.check_connection(databases=["other"]))
        finally:
            del connections["other"]
            wrapper.close()
            pool.drain()

    return check


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        ("", []),
        ("PRAGMA journal_mode = DELETE", ["E010"]),
        ("PRAGMA synchronous = OFF", ["E011"]),
        ("PRAGMA synchronous = NORMAL", ["E011"]),
        ("PRAGMA busy_timeout = 100", ["E012"]),
        ("PRAGMA foreign_keys = OFF", ["E014"]),
    ],
)
def test_a_live_sqlite_connection_that_differs_is_caught(live: Any, spoil: str, expected: list[str]) -> None:
    assert live(spoil) == expected


def test_options_that_undo_the_backend_are_caught_or_without_effect(live: Any) -> None:
    assert live(options={"transaction_mode": "DEFERRED"}) == ["E013"]
    assert live(options={"timeout": 1}) == ["E012"]
    assert live(options={"init_command": "PRAGMA synchronous = OFF"}) == []


def test_djangos_own_backend_is_caught_live(live: Any) -> None:
    assert live(engine=DjangosOwn) == ["E010", "E013"]


def test_normal_is_what_the_live_connection_has_when_it_is_set(live: Any, settings: Settings) -> None:
    settings.KAMPONG_SQLITE_SYNCHRONOUS = "NORMAL"
    assert live() == []


def test_an_old_sqlite_is_caught(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_SQLITE", (99, 0))
    assert live() == ["E015"]
