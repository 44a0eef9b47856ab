"""Lists read key ranges from an index."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from statestore.store import StateStore
from statestore.upkeep import locate, purge_expired


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


@pytest.mark.django_db
def test_the_purge_takes_the_oldest_from_an_index() -> None:
    with CaptureQueriesContext(connection) as queries:
        purge_expired(5)
    sql = queries.captured_queries[-1]["sql"]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        plan = " ".join(str(row[3]) for row in cursor.fetchall())
    assert "(expires_at<?)" in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan, "the order is that of the index"
