"""Whoever cleans up and is killed leaves whole chains, and the next one finishes (scenario 71)."""

from __future__ import annotations

from pathlib import Path

from approvals.models import AuditEntry
from approvals.services import decide
from statestore import upkeep
from statestore.clock import now
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import People
from tests.crash.conftest import Child, dies
from tests.finished import finished, whole
from tests.workbench import ASKING, acting, to_pause, write_spec
from workflows.models import Run
from workflows.retention import pruning

MANY = pruning.BATCH + 10


def test_a_sweep_that_is_killed_leaves_what_the_next_one_finishes(tmp_path: Path, people: People, child: Child) -> None:
    spec = write_spec(tmp_path, ASKING, agent_id="many", name="many.yaml")
    finished(spec, MANY)
    decide(to_pause(write_spec(tmp_path, ASKING))[1], approved=False, reason="no", actor=acting(people.approver))
    store, over = StateStore("default", "clerk"), upkeep.BATCH + 5
    at = {"created_at": now(), "updated_at": now(), "expires_at": now()}
    StateRecord.objects.bulk_create(
        StateRecord(workflow="clerk", key=f"old-{n}", value="1", version=1, **at) for n in range(over)
    )
    store.put("old-3", "renewed", ttl=3600)
    kept = {"KAMPONG_KEEP_COMPLETED": "20d", "KAMPONG_KEEP_REJECTED": "20d"}

    dies(child("house", faults="purge.deleted=kill", **kept))
    assert StateRecord.objects.count() == over - upkeep.BATCH, "the renewed one among them"
    dies(child("house", faults="retention.removed=kill", **kept))
    assert whole(spec) == MANY
    dies(child("house", faults="retention.batch=kill", **kept))
    assert whole(spec) == MANY - pruning.BATCH

    entries = AuditEntry.objects.count()
    last = child("house", **kept)
    assert (last.wait(), last.returncode) == ("", 0)
    assert whole(spec) == 0
    assert Run.objects.count() == 2, "the chain that was decided a moment ago"
    assert AuditEntry.objects.count() == entries == 1
    assert [(one.key, store.get(one.key)) for one in StateRecord.objects.all()] == [("old-3", "renewed")]
