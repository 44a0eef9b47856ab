"""The store as pages: what services keep, a million keys as quick as ten, and what is set back from there."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from approvals.models import AuditEntry
from statestore.clock import now
from statestore.models import StateRecord
from statestore.overview import kept
from tests.conftest import Clock, People, allow
from tests.counts import count
from tests.surfaces.admin.conftest import run_url
from tests.surfaces.admin.test_triggers_page import text
from tests.surfaces.admin.unattended import STORE, incident, item, mark, put, reset_url
from tests.workbench import begin
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

SignedIn = Callable[[User], Client]
AUDIT = "/admin/approvals/auditentry/"
#: A run that is not kept.
GONE = "4f6b2c1e-0000-4000-8000-000000000000"


@pytest.fixture
def operator(people: People, signed_in: SignedIn) -> Client:
    return signed_in(allow(people.operator, "approvals.view_auditentry"))


@pytest.fixture
def run(asking: SpecFile) -> Run:
    return begin(asking)


def names(client: Client, query: str) -> list[str]:
    return [row["key"] or row["agent"] for row in client.get(STORE + query).context["rows"]]


def test_incidents_are_shown_with_their_value_and_their_run(operator: Client, run: Run) -> None:
    incident(str(run.uuid), value={"summary": "<b>sda1</b> is full"})
    page = text(operator, STORE)
    for word in ("disk full", "&lt;b&gt;sda1&lt;/b&gt; is full", run_url(run), "Close…"):
        assert word in page, word
    assert "<b>" not in page


def test_keys_made_of_what_came_from_outside_are_fingerprints(operator: Client, run: Run) -> None:
    item(str(run.uuid), "bo@example.org")
    put("clerk", "once:bo@example.org", {"run": str(run.uuid)}, 60)
    put("clerk", "hook:delivery:" + mark("bo@example.org")[5:], {"run": str(run.uuid)}, 60)
    assert names(operator, "?kind=seen") == [mark("bo@example.org")[5:17]]
    assert names(operator, "?kind=deliveries") == [mark("bo@example.org")[5:17]]
    assert len(names(operator, "?kind=once")[0]) == 12
    for kind in ("seen", "once", "deliveries"):
        page = text(operator, f"{STORE}?kind={kind}")
        assert run_url(run) in page
        assert "bo@example.org" not in page
        assert mark("bo@example.org")[5:] not in page


def test_an_entry_of_a_run_that_is_not_kept_and_one_whose_time_is_over_say_so(operator: Client, clock: Clock) -> None:
    item(GONE, "a")
    item("m-1", "b")
    clock.advance(86_401)
    page = text(operator, STORE + "?kind=seen")
    assert "4f6b2c1e, not kept here" in page
    assert page.count(">over<") == 2
    assert "Forget…" not in page


def test_pages_of_a_kind_hide_nothing_and_repeat_nothing(operator: Client, run: Run) -> None:
    for number in range(60):
        item(str(run.uuid), f"item {number}", agent_id=f"agent-{number % 2}")
    item(str(run.uuid), "item 7", agent_id="agent-0")  # the same item of another agent
    begin_at, found = STORE + "?kind=seen", []
    while begin_at:
        answer = operator.get(begin_at)
        found += [(row["entry"].key, row["agent"]) for row in answer.context["rows"]]
        begin_at = STORE + answer.context["listed"].next if answer.context["listed"].next else ""
    assert found == sorted(found)
    assert len(set(found)) == 61
    for odd in ("x", "!!", "W10=", "WyJhIl0=", "WzEsMl0=", "WyJcdWQ4MDAiLCAiYSJd", "WyJcdTAwMDAiLCAiYSJd", "5", "é"):
        assert len(names(operator, f"?kind=seen&after={odd}")) == 50, odd
    assert names(operator, "?kind=nothing&agent=nobody") == []


#: A million rows in seconds, which the ORM would take minutes for.
NUMBERS = {
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT i FROM n)",
    "postgresql": "(SELECT i FROM generate_series(1, %s) AS i)",
}
RANDOM = {"sqlite": "lower(hex(randomblob(32)))", "postgresql": "encode(sha256(i::text::bytea), 'hex')"}


def _seen(many: int) -> None:
    """So many seen items of three agents."""
    columns = 'workspace, workflow, "key", value, version, created_at, updated_at, expires_at'
    moment = now()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO statestore_staterecord ({columns}) SELECT 'default', 'agent-' || (i %% 3), 'seen:' || "
            f"{RANDOM[connection.vendor]}, '{{}}', 1, %s, %s, %s FROM {NUMBERS[connection.vendor]} AS numbers",
            (moment, moment, moment + timedelta(days=1), many),
        )


def test_a_page_of_very_many_items_is_quick(operator: Client, report: Callable[[str], None]) -> None:
    many = count(3_000, 1_000_000)
    _seen(many)
    slowest = 0.0
    for agent in (None, "agent-1", "nobody"):
        for after in (None, ("seen:8", ""), ("seen:fff", "")):
            began = time.perf_counter()
            assert len(kept("default", "seen:", workflow=agent, after=after, limit=51)) <= 51
            slowest = max(slowest, time.perf_counter() - began)
    assert slowest < 1
    assert len(names(operator, "?kind=seen")) == 50
    report(f"a page of {many:,} seen items: {slowest * 1000:.1f} ms in the store at most")


# Setting back -------------------------------------------------------------------------------------------------


def post(client: Client, address: str, reason: str = "the service lost two") -> tuple[int, str]:
    """The form as the page drew it, sent; status and text of what it led to."""
    page = client.get(address)
    answer = client.post(address, {"mark": page.context["mark"], "reason": reason}, follow=True)
    return answer.status_code, " ".join(answer.content.decode().split())


@pytest.mark.parametrize(
    ("key", "value", "done", "told"),
    [
        ("cursor:poll", 7, "The cursor was reset", "cursor reset by operator on"),
        ("lock:schedule", {"run": GONE, "due": "d"}, "The lock was freed", "lock freed by operator on"),
        ("incident:k", {"value": 1, "openedAt": "o", "runId": GONE}, "incident was closed", "incident closed by"),
        (mark("a"), {"run": GONE}, "The item was forgotten", "seen item forgotten by operator on"),
    ],
)
def test_each_is_set_back_with_a_reason_and_stands_in_the_audit(
    key: str, value: object, done: str, told: str, operator: Client
) -> None:
    row = put("market", key, value)
    status, page = post(operator, reset_url(row), reason=" ")
    assert (status, "Say why, in a few words." in page, StateRecord.objects.count()) == (400, True, 1)
    status, page = post(operator, reset_url(row))
    assert (status, done in page) == (200, True), page
    assert not StateRecord.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.reason, entry.actor, entry.surface) == (
        "reset",
        "the service lost two",
        "operator",
        "admin",
    )
    assert told in text(operator, AUDIT)
    assert len(operator.get(AUDIT + "?act=reset").context["rows"]) == 1
    assert told in text(operator, f"{AUDIT}{entry.pk}/change/")
    assert operator.get(reset_url(row)).status_code == 404


def test_what_changed_since_the_page_was_opened_is_left_and_the_page_says_so(operator: Client) -> None:
    row = put("market", "cursor:poll", 7)
    page = operator.get(reset_url(row))
    put("market", "cursor:poll", 8)
    answer = operator.post(reset_url(row), {"mark": page.context["mark"], "reason": "r"})
    assert answer.status_code == 409
    assert "moved meanwhile; look at the one that it has. Nothing was changed." in answer.content.decode()
    assert kept("default", "cursor:", limit=2)[0].value == 8
    for odd in ("", "x", "9" * 30, "²"):
        assert operator.post(reset_url(row), {"mark": odd, "reason": "r"}).status_code == 409
    assert not AuditEntry.objects.exists()
    assert post(operator, reset_url(row))[0] == 200


def test_what_has_no_reset_and_what_is_gone_is_not_found(operator: Client) -> None:
    for key in ("once:k", "hook:k"):
        assert operator.get(reset_url(put("market", key, {"run": "r"}))).status_code == 404
    for no_row in (0, 99_999, 2**63, 10**30):
        assert operator.get(reset_url(no_row)).status_code == 404


def test_seeing_is_not_setting_back(people: People, signed_in: SignedIn) -> None:
    row = incident(GONE)
    reader = signed_in(people.approver)
    assert "/reset/" not in text(reader, STORE)
    assert reader.post(reset_url(row), {"mark": "1", "reason": "r"}).status_code == 403
    blind = signed_in(allow(people.stranger, "workflows.operate_run"))
    assert blind.post(reset_url(row), {"mark": "1", "reason": "r"}).status_code == 403
    assert StateRecord.objects.exists()


def test_the_story_of_the_run_tells_what_was_set_back(operator: Client, run: Run) -> None:
    post(operator, reset_url(incident(str(run.uuid))), reason="mended by hand")
    page = text(operator, run_url(run))
    assert "incident closed by operator on" in page
    assert "mended by hand" in page
