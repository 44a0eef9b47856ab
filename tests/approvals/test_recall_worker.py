"""A worker is not held up by an approval that can be withdrawn, and goes on promptly when that is over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import until
from tests.workbench import acting, begin, to_pause
from workflows.models import Run, Status
from workflows.runs import newest
from workflows.worker import WorkerPool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as server:
        yield server


def test_the_effect_comes_within_moments_of_the_end_and_others_are_served_meanwhile(
    tmp_path: Path, tools: FakeTools, people: People, settings: Settings
) -> None:
    settings.KAMPONG_POLL_SECONDS = 0.2
    run, key = to_pause(a_pay(tmp_path, "recall: 3s", url=tools.url))
    pool = WorkerPool(1)
    pool.start()
    try:
        successor = decide(key, approved=True, actor=acting(people.approver)).run
        other = begin(a_pay(tmp_path, "auto: {approve_if: 'true'}", url=tools.url))
        until(lambda: newest(other).status == Status.COMPLETED)
        assert newest(run).status == Status.QUEUED
        successor = Run.objects.get(pk=successor.pk)
        assert successor.not_before is not None
        until(lambda: newest(run).status == Status.COMPLETED, 30)
        ended = newest(run).started_at
        assert ended is not None
        assert 0 <= (ended - successor.not_before).total_seconds() < 3
    finally:
        pool.stop(20)
    assert time.time() >= successor.not_before.timestamp()
    assert len(tools.requests) == 4
