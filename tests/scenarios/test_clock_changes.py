"""Scenario 69: where the clocks of the process's zone change, 24 hours are 86,400 seconds, and no time is special."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from approvals.expiry import expire_due
from approvals.models import ApprovalRequest
from statestore.clock import now
from statestore.store import StateStore
from tests.approvals.policies import text_of, written
from tests.conftest import Clock
from tests.workbench import to_pause

DAY = 86_400
#: In New York: from 02:00 to 03:00, and from 02:00 back to 01:00; each with a local time that is skipped or repeated.
CHANGES = {
    "spring": (datetime(2027, 3, 14, 7, tzinfo=UTC), "03-14T02:30"),
    "autumn": (datetime(2027, 11, 7, 6, tzinfo=UTC), "11-07T01:30"),
}
SPEC = (
    '{step: sign, type: approval, expires_in: 24h, message: "'
    "{{ $toMillis('2027-WHEN:00') - $toMillis('2027-WHEN:00Z') }} "
    "{{ $fromMillis($toMillis('2027-WHEN:00Z') + 86400000) }}"
    '"}'
)


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
def test_a_day_over_a_change_of_the_clocks_is_as_long_as_any(
    change: str, clock: Clock, settings: Settings, tmp_path: Path
) -> None:
    moment, when = CHANGES[change]
    settings.TIME_ZONE = "America/New_York"
    begin = moment - timedelta(hours=1)
    clock.advance((begin - datetime.now(UTC)).total_seconds())
    assert time.localtime(begin.timestamp()).tm_gmtoff != time.localtime(begin.timestamp() + DAY).tm_gmtoff
    assert timezone.localtime(now()).utcoffset() != timezone.localtime(now() + timedelta(days=1)).utcoffset()

    store = StateStore("default", "payer")
    kept = store.put("k", 1, ttl=timedelta(hours=24))
    _, key = to_pause(written(tmp_path, text_of(SPEC.replace("WHEN", when))))
    request = ApprovalRequest.objects.get(key=key)
    (entry,) = store.entries()
    assert kept.expires_at is not None
    assert (kept.expires_at - entry.created_at).total_seconds() == pytest.approx(DAY, abs=5)
    assert (request.expires_at - request.created_at).total_seconds() == pytest.approx(DAY, abs=5)

    # The skipped and the repeated local time are times of UTC like any.
    day_after = datetime.fromisoformat(f"2027-{when}") + timedelta(days=1)
    assert request.reason == f"0 {day_after.isoformat()}.000Z"

    clock.advance(DAY - 60)
    assert (store.get("k"), expire_due()) == (1, 0)
    clock.advance(120)
    assert (store.get("k"), expire_due()) == (None, 1)
