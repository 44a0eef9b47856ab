"""Runs as pages: a chain once, its story, what to do next, and an operator's acts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import AuditEntry
from approvals.services import decide
from statestore.clock import now
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import RUNS, decide_url, run_url
from tests.workbench import acting, begin, to_pause, work
from workflows.models import Attempt, Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest
from workflows.times import rfc3339

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.operator)


def _ids(browser: Client, query: str = "") -> list[int]:
    return [row["run"].pk for row in browser.get(RUNS + query).context["rows"]]


def test_a_chain_shows_once_by_its_newest_run_and_is_found_by_any_of_its_ids(
    operator: Client, waiting: tuple[Run, str], people: People
) -> None:
    first, key = waiting
    decide(key, approved=True, actor=acting(people.approver))
    last = newest(first)
    assert _ids(operator) == [last.pk]
    page = operator.get(RUNS).content.decode()
    assert "1 earlier in its chain" in page
    assert 'k-busy">running<' in page
    for text in (str(first.uuid), str(first.uuid)[:8], str(last.uuid)):
        assert _ids(operator, f"?q={text}") == [last.pk], text
    assert _ids(operator, "?q=00000000-0000-4000-8000-000000000000") == []
    assert "An id is 4 to 36 of the characters" in operator.get(RUNS + "?q=%27x").content.decode()


def test_it_narrows_by_status_as_read_and_by_agent(
    operator: Client, tmp_path: Path, paying: SpecFile, asking: SpecFile
) -> None:
    waiting, _ = to_pause(asking)
    lost = scenes.interrupted(paying)
    queued = begin(asking)
    assert _ids(operator, "?status=running") == [queued.pk]
    assert _ids(operator, "?status=awaiting approval") == [waiting.pk]
    assert _ids(operator, "?status=interrupted") == [lost.pk]
    assert _ids(operator, "?agent=payer") == [lost.pk]
    assert "No run fits these filters." in operator.get(RUNS + "?status=expired").content.decode()


def test_no_runs_at_all_says_how_to_start_one(operator: Client) -> None:
    assert "There are no runs yet." in operator.get(RUNS).content.decode()


def test_the_page_tells_the_trace_the_calls_and_the_whole_story(
    operator: Client, paying: SpecFile, people: People, tools: FakeTools
) -> None:
    first, key = to_pause(paying, actor=acting(people.requester), input="invoice 7")
    waiting = operator.get(run_url(first)).content.decode()
    assert "The run waits for a person at step “pay”." in waiting
    assert decide_url(key) in waiting
    assert key not in waiting
    decide(key, approved=True, reason="checked", actor=acting(people.approver, "admin"))
    work()
    page = operator.get(run_url(newest(first))).content.decode()
    for text in (
        "The run is done.",
        "requester (api)",
        "invoice 7",
        "{&quot;id&quot;:&quot;p-1&quot;}",
        "tool receipt",
    ):
        assert text in page, text
    assert "approved by approver on" in page
    assert ": checked" in page
    assert run_url(first) in page
    old = operator.get(run_url(first)).content.decode()
    assert "Go to the newest run of this chain" in old
    assert "tok-canary" not in page + old


def test_an_error_comes_with_the_next_move(
    operator: Client, tmp_path: Path, paying: SpecFile, tools: FakeTools
) -> None:
    failed = operator.get(run_url(scenes.failed(tmp_path, tools.url))).content.decode()
    assert "was answered with status 500" in failed
    assert "Retry goes on at this step" in failed
    lost = operator.get(run_url(scenes.interrupted(paying))).content.decode()
    assert "The run lost its worker at step “look”." in lost
    assert "its fate is not known" in lost
    assert "choose Retry, which makes the call again, or Give up." in lost


def test_a_queued_run_without_a_worker_says_so_and_the_page_reloads_until_told_not_to(
    operator: Client, asking: SpecFile
) -> None:
    run = begin(asking)
    page = operator.get(run_url(run)).content.decode()
    assert "No worker was seen in the last seconds." in page
    assert 'http-equiv="refresh"' in page
    assert 'http-equiv="refresh"' not in operator.get(run_url(run) + "?refresh=off").content.decode()
    work()
    assert 'http-equiv="refresh"' not in operator.get(run_url(run)).content.decode()


def test_only_the_acts_that_the_status_allows_are_drawn(
    operator: Client, waiting: tuple[Run, str], paying: SpecFile
) -> None:
    lost = scenes.interrupted(paying)
    for run, drawn in ((waiting[0], {"cancel"}), (lost, {"retry", "give_up"})):
        page = operator.get(run_url(run)).content.decode()
        assert {act for act in ("cancel", "retry", "give_up") if f"act/{act}/" in page} == drawn


def test_an_operator_retries_gives_up_and_cancels_with_a_reason(
    operator: Client, waiting: tuple[Run, str], paying: SpecFile
) -> None:
    lost, other = scenes.interrupted(paying), scenes.interrupted(paying)
    asked = operator.get(f"{RUNS}{lost.pk}/act/retry/")
    assert "look at the other side first" in asked.content.decode()
    unsaid = operator.post(f"{RUNS}{lost.pk}/act/retry/", {"reason": "  "})
    assert (unsaid.status_code, "Say why, in a few words." in unsaid.content.decode()) == (400, True)
    answer = operator.post(f"{RUNS}{lost.pk}/act/retry/", {"reason": "nothing arrived there"})
    assert (answer.status_code, answer.headers["Location"]) == (302, run_url(newest(lost)))
    assert operator.post(f"{RUNS}{other.pk}/act/give_up/", {"reason": "late"}).status_code == 302
    assert operator.post(f"{RUNS}{waiting[0].pk}/act/cancel/", {"reason": ""}).status_code == 302
    other.refresh_from_db()
    waiting[0].refresh_from_db()
    assert (other.status, waiting[0].status) == (Status.FAILED, Status.CANCELLED)
    acts = AuditEntry.objects.order_by("pk").values_list("act", "actor", "surface", "reason")
    assert list(acts) == [
        ("retry", "operator", "admin", "nothing arrived there"),
        ("give_up", "operator", "admin", "late"),
        ("cancel", "operator", "admin", ""),
    ]


def test_an_act_that_came_too_late_is_a_sentence_and_changes_nothing(
    operator: Client, waiting: tuple[Run, str], people: People, paying: SpecFile
) -> None:
    run, key = waiting
    decide(key, approved=True, actor=acting(people.approver))
    late = operator.post(f"{RUNS}{run.pk}/act/cancel/", {"reason": "stop"})
    assert late.status_code == 409
    assert "went on meanwhile as" in late.content.decode()
    assert newest(run).status == Status.QUEUED
    lost = scenes.interrupted(paying)
    paying.path.write_text(paying.path.read_text().replace("/pay", "/other"))
    changed = operator.post(f"{RUNS}{lost.pk}/act/retry/", {"reason": "again"})
    assert changed.status_code == 409
    assert paying.hash[:12] in changed.content.decode()
    lost.refresh_from_db()
    assert lost.status == Status.INTERRUPTED


def test_what_is_not_there_is_not_found(operator: Client) -> None:
    for address in ("999999/change/", "x/change/", "999999/act/cancel/", "1/act/destroy/"):
        assert operator.get(RUNS + address).status_code == 404, address


def test_a_run_that_waits_to_call_again_says_until_when(operator: Client, asking: SpecFile) -> None:
    run = begin(asking)
    Run.objects.filter(pk=run.pk).update(not_before=now() + timedelta(hours=1), step="look")
    Attempt.objects.create(run=run, step_index=0, step="look", n=1, kind="tool", name="look", started_at=now())
    run.refresh_from_db()
    assert run.not_before is not None
    page = operator.get(run_url(run)).content.decode()
    assert f"The run waits at step “look” until {rfc3339(run.not_before)}, before attempt 2." in page
