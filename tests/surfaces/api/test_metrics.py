"""`GET /metrics`: what waits and what was counted, to those who may see runs, at a fixed cost and without a lock."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.services import decide
from statestore.clock import DbNow, db_now
from statestore.store import StateStore
from tests.conftest import ROOT, Clock, People
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from tests.triggers.scheduling import move, scheduled
from tests.workbench import acting, begin, to_pause, work
from workflows import beats
from workflows.api.exposition import COUNTED, READ
from workflows.metrics.counters import Counter, Histogram
from workflows.models import Run, Status, TriggerState
from workflows.registry import SpecFile
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)

MOST_STATEMENTS = 19
#: Statements that change or lock something.
HEAVY = re.compile(r"^\s*(INSERT|UPDATE|DELETE|LOCK|BEGIN|SAVEPOINT)|FOR (UPDATE|SHARE|NO KEY)", re.IGNORECASE)


def numbers(callers: Callers) -> dict[tuple[str, ...], float]:
    """Every sample of a scrape, by its name and the values of its labels."""
    response = callers.requester.get("/metrics")
    assert (response.status_code, response["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert response["Cache-Control"] == "no-store"
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def gauges(callers: Callers) -> dict[tuple[str, ...], float]:
    """What is read from the database and is not 0, without the common beginning of the names."""
    read = {gauge.name for gauge in READ}
    return {
        (name.removeprefix("kampong_"), *labels): value
        for (name, *labels), value in numbers(callers).items()
        if name in read and value
    }


def fill(clerk: SpecFile, user: User) -> None:
    """Something of everything that is counted in the database; what was queued before waits then, too."""
    _, key = to_pause(clerk)
    to_pause(clerk)
    decide(key, approved=False, actor=acting(user))
    Run.objects.filter(pk=begin(clerk).pk).update(status=Status.INTERRUPTED)
    begin(clerk)
    request = ApprovalRequest.objects.filter(status="open").latest("id")
    for status in NoticeStatus.values:
        moment = db_now()
        Notice.objects.create(request=request, channel="slack", address="{}", about="opened", status=status,
                              due_at=moment, created_at=moment)  # fmt: skip
    moment, number = db_now(), TriggerState.objects.count()
    TriggerState.objects.create(agent_id=f"poller-{number}", kind="poll", definition="1", due_at=moment, failures=3,
                                created_at=moment)  # fmt: skip
    StateStore("default", "clerk").put(f"gone-{number}", 1, ttl=1)


def test_it_tells_what_waits_and_how_long(callers: Callers, clerk: SpecFile, people: People, clock: Clock) -> None:
    beats.beat()
    fill(clerk, people.approver)
    clock.advance(5)
    found = gauges(callers)
    for name in ("queue_oldest_seconds", "approvals_oldest_seconds", "notices_oldest_seconds"):
        assert 5 <= found.pop((name,)) < 60
    assert found == {
        ("runs", "awaiting_approval"): 1,
        ("runs", "interrupted"): 1,
        ("runs", "queued"): 1,
        ("queue_depth",): 1,
        ("workers_alive",): 1,
        ("trigger_failures", "poll", "poller-0"): 3,
        ("store_expired_entries",): 1,
        ("approvals_waiting",): 1,
        ("notices_waiting",): 1,
        ("notices_given_up",): 1,
    }
    clock.advance(8 * 24 * 3600)
    later = gauges(callers)
    assert later["approvals_overdue",] == 1
    assert ("workers_alive",) not in later


def test_what_nobody_tries_again_is_no_alarm_for_ever(callers: Callers, clock: Clock) -> None:
    for workspace, failures in (("default", 2), ("other", 4)):
        TriggerState.objects.create(workspace=workspace, agent_id="gone", kind="poll", definition="1", due_at=db_now(),
                                    failures=failures, retry_at=DbNow(60), created_at=db_now())  # fmt: skip
    assert gauges(callers) == {("trigger_failures", "gone", "poll"): 4}
    clock.advance(3700)
    assert gauges(callers) == {}


def test_a_trigger_that_no_scheduler_fires_is_an_alarm(
    callers: Callers, clock: Clock, tmp_path: Path, settings: Settings
) -> None:
    settings.KAMPONG_SPECS = [str(tmp_path)]
    for agent_id in ("a", "b"):
        scheduled(tmp_path, "0 * * * *", agent_id=agent_id)
    fire_due()
    move(clock, TriggerState.objects.latest("pk").due_at + timedelta(seconds=590))
    assert gauges(callers) == {}
    clock.advance(20)
    assert gauges(callers) == {("triggers_overdue",): 2}
    (tmp_path / "a.yaml").unlink()
    assert gauges(callers) == {("triggers_overdue",): 1}, "a file that is gone is nobody's alarm"
    assert fire_due() == 1
    assert ("triggers_overdue",) not in gauges(callers)


def test_a_scrape_costs_the_same_however_much_there_is_and_changes_and_locks_nothing(
    callers: Callers, clerk: SpecFile, people: People
) -> None:
    callers.requester.get("/metrics")
    costs = []
    for times in (1, 3):
        for _ in range(times):
            fill(clerk, people.approver)
        with CaptureQueriesContext(connection) as caught:
            assert callers.requester.get("/metrics").status_code == 200
        statements = [query["sql"] for query in caught.captured_queries]
        assert [one for one in statements if HEAVY.search(one)] == []
        costs.append(len(statements))
    assert costs[0] == costs[1] <= MOST_STATEMENTS, costs


def test_a_scrape_waits_for_no_transaction(callers: Callers, clerk: SpecFile, people: People) -> None:
    fill(clerk, people.approver)
    written, scraped = threading.Event(), threading.Event()
    waited: list[bool] = []

    def hold() -> None:
        with transaction.atomic():
            Run.objects.update(error="held")
            ApprovalRequest.objects.update(doubt="held")
            written.set()
            waited.append(scraped.wait(30))
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert written.wait(30)
        assert gauges(callers)["approvals_waiting",] == 1
    finally:
        scraped.set()
        holder.join(60)
    assert waited == [True]


def test_it_needs_the_permission_and_takes_a_token_or_a_session(callers: Callers, people: People) -> None:
    check(callers.nobody.get("/metrics"), "not_authenticated")
    assert "workflows.view_run" in check(callers.stranger.get("/metrics"), "not_allowed")["rule"]
    check(callers.requester.post("/metrics", {}), "method_not_allowed")
    check(callers.requester.get("/metrics?name=x"), "invalid")
    browser = Client()
    browser.force_login(people.operator)
    assert browser.get("/metrics/").status_code == 200


def test_no_id_no_key_and_no_word_of_a_caller_is_in_it(callers: Callers, clerk: SpecFile, people: People) -> None:
    fill(clerk, people.approver)
    _, key = to_pause(clerk)
    answer = callers.approver.post(f"/approvals/{key}/approve?wait=0", {"approved": True, "reason": "canary"})
    assert answer.status_code == 200
    callers.approver.post("/approvals/canary/approve", {"approved": True})
    work()
    text = callers.requester.get("/metrics").content.decode()
    assert "canary" not in text
    assert not re.search(r'="[^"]*[0-9a-f]{8}', text)
    assert 'kampong_decide_seconds_count{answer="approval_not_found"}' in text


def test_every_metric_is_explained_and_no_other() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("## Metrics\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(kampong_\w+)` \| (\w+) \|([^|]*)\| \S", section, re.MULTILINE)
    told: dict[str, Any] = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    known = {one.name: (_kind(one), one.labels) for one in (*COUNTED, *READ)}
    assert len(rows) == len(told)
    assert told == known


def _kind(metric: object) -> str:
    return {Counter: "counter", Histogram: "histogram"}.get(type(metric), "gauge")


def test_a_histogram_is_in_the_form_that_prometheus_reads(callers: Callers, clerk: SpecFile, people: People) -> None:
    before = numbers(callers)
    decide(to_pause(clerk)[1], approved=True, actor=acting(people.approver))
    after = numbers(callers)
    name = "kampong_decision_latency_seconds"
    for sample in ((f"{name}_bucket", "+Inf", "api", "approved"), (f"{name}_count", "api", "approved")):
        assert after[sample] == before.get(sample, 0) + 1
    bounds = ("10.0", "60.0", "300.0", "2.592e+06", "+Inf")
    falling = [after[(f"{name}_bucket", *sorted((bound, "api", "approved")))] for bound in bounds]
    assert falling == sorted(falling)
