"""Purging what has expired, and finding an entry by its key alone."""

from __future__ import annotations

import pytest

from statestore.errors import BadKey, ReservedKind
from statestore.models import StateRecord
from statestore.store import StateStore
from statestore.upkeep import Located, locate, purge_expired
from tests.conftest import Clock

pytestmark = pytest.mark.django_db


def approvals(workflow: str = "payer", workspace: str = "default") -> StateStore:
    return StateStore(workspace, workflow, kinds=("approval:",))


def test_the_purge_works_in_batches_over_all_scopes_and_spares_approvals(clock: Clock) -> None:
    for number in range(5):
        StateStore("default", f"w{number}").put("k", 1, ttl=10 + number)
    StateStore("other", "w").put("k", 1, ttl=10)
    StateStore("default", "w").put("live", 1, ttl=1000)
    StateStore("default", "w").put("stays", 1)
    StateStore("default", "w", kinds=("once:",)).put("once:k", 1, ttl=10)
    approvals().put("approval:k", "pending", ttl=10)
    assert purge_expired() == 0
    clock.advance(100)
    assert purge_expired(limit=3) == 3
    assert purge_expired(limit=3) == 3
    assert purge_expired(limit=3) == 1
    assert purge_expired(limit=3) == 0
    assert sorted(StateRecord.objects.values_list("key", flat=True)) == ["approval:k", "live", "stays"]
    assert approvals().take_expired("approval:k") == "pending"


def test_a_key_is_found_in_whatever_workflow_it_lies(clock: Clock) -> None:
    approvals("payer").put("approval:a", 1, ttl=10)
    approvals("clerk").put("approval:b", 1)
    approvals("clerk", "other").put("approval:a", 1)
    StateStore("default", "clerk").put("a", 1)
    clock.advance(11)
    expired = Located(workflow="payer", key="approval:a", expired=True)
    live = Located(workflow="clerk", key="approval:b", expired=False)
    assert locate("default", "approval:") == (expired, live)
    assert locate("default", "approval:", key="approval:b") == (live,)
    assert locate("default", "approval:", key="approval:c") == ()
    assert locate("default", "approval:", limit=1) == (expired,)
    assert locate("default", "approval:", after="approval:a") == (live,)


def test_only_reserved_kinds_are_searched_across_workflows() -> None:
    with pytest.raises(ReservedKind):
        locate("default", "a")
    with pytest.raises(BadKey):
        locate("default", "approval:", key="approval:")
    with pytest.raises(ReservedKind):
        locate("default", "approval:", key="other")
