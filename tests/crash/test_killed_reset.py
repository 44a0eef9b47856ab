"""Whoever sets back and is killed has set nothing back and written no audit entry; the next one does both."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.models import AuditEntry
from statestore.clock import now
from statestore.keys import CURSOR, LOCK
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import People
from tests.crash.conftest import Child, dies
from workflows.models import TriggerState
from workflows.triggers import locks
from workflows.triggers.handover import POSITION

pytestmark = pytest.mark.django_db(transaction=True)

ACTS = [("reset_cursor", "reset.taken"), ("free_lock", "reset.noted"), ("try_now", "reset.noted")]


@pytest.mark.parametrize(("act", "point"), ACTS)
def test_it_is_done_with_its_audit_entry_or_not_at_all(act: str, point: str, people: People, child: Child) -> None:
    moment = now()
    TriggerState.objects.create(
        agent_id="clerk",
        kind="poll",
        definition="d",
        due_at=moment + timedelta(hours=1),
        retry_at=moment + timedelta(hours=2),
        created_at=moment,
    )
    StateStore("default", "clerk", kinds=(CURSOR,)).put(POSITION, 7)
    StateStore("default", "clerk", kinds=(LOCK,)).put(locks.KEY, {"run": "r", "due": "d"})

    def kept() -> tuple[list[object], list[object]]:
        return list(StateRecord.objects.order_by("id").values()), list(TriggerState.objects.values())

    before = kept()
    dies(child("set_back", act, people.operator.username, "clerk", faults=f"{point}=kill"))
    assert (kept(), AuditEntry.objects.count()) == (before, 0)
    again = child("set_back", act, people.operator.username, "clerk")
    assert (again.wait(), again.returncode) == ("", 0)
    assert kept() != before
    assert AuditEntry.objects.get().act == "reset"
