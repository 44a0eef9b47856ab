"""Each thing an operator can get wrong about the database has a check that names the fix (scenario 57)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.checks.registry import registry
from pytest_django import Settings

from statestore import checks

SQLITE = {"ENGINE": "statestore.sqlite", "NAME": "state.db"}


def ids(found: list[Any]) -> list[str]:
    for message in found:
        assert message.hint, message.id
    return [message.id.removeprefix("statestore.") for message in found]


def configured(database: dict[str, Any]) -> list[str]:
    return ids(checks._check_database("DATABASES['default']", database))


def test_the_projects_own_settings_are_clean() -> None:
    assert checks.check_settings() == []
    assert configured(SQLITE) == []


@pytest.mark.django_db
def test_the_live_connection_is_as_promised() -> None:
    assert checks.check_connection(databases=["default"]) == []


@pytest.mark.django_db
def test_both_are_registered_with_django() -> None:
    assert [m for m in run_checks(databases=["default"]) if str(m.id).startswith("statestore.")] == []
    assert {checks.check_settings, checks.check_connection} <= set(registry.get_checks())


def test_a_misspelt_setting_is_caught(settings: Settings) -> None:
    settings.KAMPONG_APPROVAL_TLL = 5
    (found,) = checks.check_settings()
    assert found.id == "statestore.E007"
    assert "KAMPONG_APPROVAL_TTL" in str(found.hint)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ENGINE": "django.db.backends.sqlite3"}, "E001"),
        ({"timeout": 20}, "E002"),
        ({"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"}, "E002"),
        ({"ENGINE": "django.db.backends.postgresql", "sslmode": "require"}, "E002"),
        ({"ATOMIC_REQUESTS": True}, "E003"),
        ({"AUTOCOMMIT": False}, "E003"),
        ({"TIME_ZONE": "Europe/Berlin"}, "E006"),
        ({"NAME": ":memory:"}, "W001"),
        ({"NAME": "file:x?mode=memory&cache=shared"}, "W001"),
    ],
)
def test_a_wrong_database_setting_is_caught(change: dict[str, Any], expected: str) -> None:
    assert configured(SQLITE | change) == [expected]


def test_every_database_is_checked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "other", SQLITE | {"timeout": 5})
    (message,) = checks.check_settings()
    assert "'other'" in message.msg
    assert "timeout" in message.msg


def test_naive_times_are_caught(settings: Settings) -> None:
    settings.USE_TZ = False
    assert ids(checks.check_settings()) == ["E004"]


def test_an_unknown_synchronous_is_caught(settings: Settings) -> None:
    settings.KAMPONG_SQLITE_SYNCHRONOUS = "OFF"
    assert ids(checks.check_settings()) == ["E005"]
