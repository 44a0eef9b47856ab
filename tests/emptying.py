"""The test database after a test that committed: emptied in one go, and what migrating left in it stays.

Django's own way truncates every table and then looks up each permission of each model again, which takes as long as
many a test does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush
from django.db import connection, transaction
from django.test import TransactionTestCase

from workflows import heartbeat

#: What migrating leaves. Hardly a test changes it; after one that does, it is put back.
LEFT = (ContentType, Permission)
#: After a test with more rows than this the tables are truncated: PostgreSQL would go on reading the dead ones.
MANY = 1_000


class Migrated:
    """The database as it is before the first test."""

    def __init__(self) -> None:
        kept = {model._meta.db_table for model in LEFT}
        names = connection.introspection.django_table_names(only_existing=True, include_views=False)
        self._delete = [f"DELETE FROM {connection.ops.quote_name(name)}" for name in sorted(set(names) - kept)]
        self._numbers = " UNION ALL ".join(f"SELECT count(*), max(id) FROM {name}" for name in sorted(kept))
        self._types, self._permissions = list(ContentType.objects.all()), list(Permission.objects.all())
        self._before = self._present()

    def _present(self) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(self._numbers)
            return list(cursor.fetchall())

    def empty(self) -> bool:
        """Delete every row that was not there; whether it is as it was, and will do."""
        # PostgreSQL takes them all at once; each answer has its own count.
        texts = self._delete if connection.vendor == "sqlite" else ["; ".join(self._delete)]
        rows = 0
        with transaction.atomic(), connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
                rows += cursor.rowcount
            while connection.vendor != "sqlite" and cursor.nextset():
                rows += cursor.rowcount
        return rows <= MANY and self._present() == self._before

    def put_back(self, **kwargs: Any) -> None:
        """In the place of Django's signal, after everything was emptied."""
        ContentType.objects.clear_cache()
        ContentType.objects.bulk_create(self._types)
        Permission.objects.bulk_create(self._permissions)


@contextmanager
def emptied_to(migrated: Migrated) -> Iterator[None]:
    """So it is after each test that commits."""
    whole: Any = vars(TransactionTestCase)["_fixture_teardown"]

    def tear_down(self: TransactionTestCase) -> None:
        # Wait for a renewal that is under way: it would find the database closed in its middle.
        with heartbeat.renewing:
            if not migrated.empty():
                whole(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "emit_post_migrate_signal", lambda *args, **kwargs: migrated.put_back())
        patch.setattr(TransactionTestCase, "_fixture_teardown", tear_down)
        yield
