"""Lists read key ranges from an index."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from statestore.store import StateStore
from statestore.upkeep import locate


@pytest.mark.django_db
def test_a_list_searches_an_index_and_scans_nothing() -> None:
    store = StateStore("default", "payer")
    for act in (lambda: store.list("a"), lambda: store.list(), lambda: locate("default", "approval:")):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            act()
        sql = queries.captured_queries[-1]["sql"]
        assert "LIKE" not in sql
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
        assert "SEARCH" in plan
        assert "SCAN" not in plan
