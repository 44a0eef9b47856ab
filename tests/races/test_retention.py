"""Several processes that end what is over, and operators who retry it at the same moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.conftest import Clock, People
from tests.counts import count
from tests.fakes_tools import FakeTools
from tests.finished import finished, whole
from tests.races.test_expiry import in_threads
from tests.surfaces.admin.scenes import FAILING
from tests.workbench import ASKING, acting, begin, to_pause, work, write_spec
from workflows.errors import NotPossible, RunNotFound
from workflows.models import Run, Status
from workflows.retention.pruning import prune, prune_decisions
from workflows.runs import newest, retry_run

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(5, 100)
CHAINS = count(60, 2_000)


def to_the_end(act: Callable[..., int]) -> int:
    """In a thread of a pool: until nothing is left."""
    done = 0
    try:
        while part := act(limit=7):
            done += part
    finally:
        connections.close_all()
    return done


def test_of_several_at_once_each_chain_is_ended_by_one(tmp_path: Path, settings: Settings) -> None:
    spec = write_spec(tmp_path, ASKING)
    finished(spec, CHAINS)
    finished(spec, 5, days_ago=1)
    settings.KAMPONG_KEEP_COMPLETED = "20d"
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(to_the_end, [prune] * 4))
    left = to_the_end(prune)
    assert sum(done) + left == CHAINS
    assert whole(spec) == 5


def test_the_same_with_decisions(tmp_path: Path, people: People, clock: Clock, settings: Settings) -> None:
    spec = write_spec(tmp_path, ASKING)
    for _ in range(count(8, 100)):
        decide(to_pause(spec)[1], approved=False, reason="no", actor=acting(people.approver))
    chains = Run.objects.filter(root=None).count()
    clock.advance(10 * 24 * 3600)
    settings.KAMPONG_KEEP_REJECTED, settings.KAMPONG_KEEP_DECISIONS = "1d", "20d"
    with ThreadPoolExecutor(3) as pool:
        emptied = sum(pool.map(to_the_end, [prune] * 3)) + to_the_end(prune)
        clock.advance(11 * 24 * 3600)
        deleted = sum(pool.map(to_the_end, [prune, prune_decisions, prune_decisions])) + to_the_end(prune_decisions)
    assert (emptied, deleted) == (chains, chains)
    assert (Run.objects.count(), ApprovalRequest.objects.count()) == (0, 0)


def test_a_retry_and_the_end_of_a_run_at_once_have_one_winner(
    tmp_path: Path, people: People, clock: Clock, settings: Settings, report: Callable[[str], None]
) -> None:
    settings.KAMPONG_KEEP_FAILED = "1d"
    operator, won = acting(people.operator), Counter[str]()

    def retry(run: Run) -> Any:
        try:
            return retry_run(run, actor=operator, reason="again")
        except (NotPossible, RunNotFound) as refused:
            return refused

    with FakeTools({"GET /broken": {"status": 500}}) as tools:
        spec = write_spec(tmp_path, FAILING, url=tools.url)
        for _ in range(ROUNDS):
            run = begin(spec)
            work()
            run.refresh_from_db()
            assert run.status == Status.FAILED
            clock.advance(24 * 3600 + 1)
            retried, pruned = in_threads(partial(retry, run), prune)
            if isinstance(retried, Run):
                won["retry"] += 1
                assert pruned == 0
                assert newest(run) == retried
                work()
                assert Run.objects.filter(root=run).get().status == Status.FAILED
                Run.objects.filter(root=run).update(status=Status.COMPLETED)
            else:
                won["retention"] += 1
                assert (pruned, Run.objects.filter(pk=run.pk).exists()) == (1, False), retried
    report(f"{ROUNDS} rounds of a retry against retention, one winner each: {dict(won)}")
