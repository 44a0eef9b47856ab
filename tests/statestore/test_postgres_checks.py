"""The live Postgres connection is what the checks promise, and each difference is named."""

from __future__ import annotations

import pytest
from django.db import connection

from statestore import checks
from tests.statestore.test_checks import ids

pytestmark = pytest.mark.django_db


def test_an_old_postgres_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_POSTGRES", 99)
    assert ids(checks.check_connection(databases=["default"])) == ["E016"]


def test_keys_in_another_collation_are_caught() -> None:
    with connection.cursor() as cursor:
        cursor.execute('ALTER TABLE statestore_staterecord ALTER COLUMN key TYPE varchar(420) COLLATE "default"')
    assert ids(checks.check_connection(databases=["default"])) == ["E018"]
