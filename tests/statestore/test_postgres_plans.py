"""The purge takes the oldest from an index, and in the order of that index."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from statestore.upkeep import purge_expired


@pytest.mark.django_db
def test_the_purge_takes_the_oldest_from_an_index() -> None:
    with CaptureQueriesContext(connection) as queries:
        purge_expired(5)
    with connection.cursor() as cursor:
        for other in ("seqscan", "bitmapscan", "sort"):  # what is quicker on an empty table
            cursor.execute(f"SET LOCAL enable_{other} = off")
        cursor.execute(f"EXPLAIN {queries.captured_queries[-1]['sql']}")
        plan = "\n".join(str(row[0]) for row in cursor.fetchall())
    assert "Index Scan using staterecord_expires_at" in plan
    assert "Index Cond: (expires_at <= statement_timestamp())" in plan
    assert "Sort" not in plan
