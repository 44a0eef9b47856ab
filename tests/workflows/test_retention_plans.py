"""What is over is found by an index, however many runs there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from tests.finished import finished
from tests.workbench import ASKING, write_spec
from workflows.retention.pruning import prune, prune_decisions

pytestmark = pytest.mark.django_db


def plan_of(sql: str) -> str:
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # So few rows are sooner read whole, or sorted, whichever its statistics say at the moment.
            for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"{explain} {sql}")
        return " ".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize("keep", ["10d", "3", "10d 3"])
def test_runs_are_looked_for_in_the_order_of_their_ends(keep: str, tmp_path: Path, settings: Settings) -> None:
    finished(write_spec(tmp_path, ASKING), 8, days_ago=1)
    settings.KAMPONG_KEEP_COMPLETED, settings.KAMPONG_KEEP_DECISIONS = keep, "1d"
    with CaptureQueriesContext(connection) as queries:
        prune(limit=2)
        prune_decisions(limit=2)
    asked = [
        query["sql"] for query in queries.captured_queries if "ORDER BY" in query["sql"] and "LIMIT" in query["sql"]
    ]
    indexes = {"run_finished", "run_pruned"}
    for sql in asked:
        plan = plan_of(sql)
        assert [name for name in indexes if name in plan], (sql, plan)
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan
    assert len(asked) >= 2
    assert any('pruned_at" IS NOT NULL' in sql for sql in asked)


def test_a_pass_reads_the_time_once_however_many_agents_there_are(tmp_path: Path, settings: Settings) -> None:
    for agent_id in ("a", "b", "c"):
        finished(write_spec(tmp_path, ASKING, agent_id=agent_id, name=f"{agent_id}.yaml"), 2, days_ago=20)
    settings.KAMPONG_KEEP_COMPLETED = settings.KAMPONG_KEEP_FAILED = settings.KAMPONG_KEEP_DECISIONS = "10d"
    with CaptureQueriesContext(connection) as queries:
        assert prune(limit=10) == 6
    asked = [query["sql"] for query in queries.captured_queries if query["sql"].startswith("SELECT statement_timesta")]
    assert len(asked) == (1 if connection.vendor == "postgresql" else 0)
