"""`queue_doctor` as a command: what it prints, how it ends, who may mend, and that its page names every code."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import ApprovalRequest, AuditEntry
from statestore.clock import now
from statestore.models import StateRecord
from tests.conftest import ROOT, People
from tests.counts import count
from tests.damaged import attempt, change_request
from tests.databases import DATABASE, PROVE
from tests.surfaces.cli.running import command
from tests.workbench import ASKING, begin, to_pause, write_spec
from workflows.models import Run, Status
from workflows.repair.contributed import registered
from workflows.repair.examination import examine
from workflows.repair.findings import Scope

pytestmark = pytest.mark.django_db(transaction=True)


def test_where_nothing_is_wrong_it_says_so_and_asks_for_nobody(tmp_path: Path) -> None:
    to_pause(write_spec(tmp_path, ASKING))
    told = command("queue_doctor")
    assert (told.code, told.out, told.err) == (0, "Nothing is wrong.\n", "")
    assert command("queue_doctor", "--all", "--json").object() == {"success": True, "findings": []}


def test_a_mismatch_is_explained_and_mended(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    StateRecord.objects.all().delete()
    told = command("queue_doctor")
    assert told.code == 2
    assert re.search(rf"record_missing  run {run.uuid} of clerk at step first, for \d+ s", told.out)
    assert [line.split()[0] for line in told.out.splitlines() if line.startswith("    ")] == ["wrong", "means", "--fix"]
    assert told.out.endswith("1 mismatch: --fix mends 1.\n")
    assert key not in told.out
    assert not AuditEntry.objects.filter(act="repair").exists()
    told = command("queue_doctor", "--fix", "--as", "operator", "--reason", "the disk\nwas full")
    assert told.code == 0
    assert told.out.startswith("mended  record_missing  run ")
    assert told.out.endswith("1 mended. Nothing is wrong any more.\n")
    entries = AuditEntry.objects.filter(act="repair")
    assert {(entry.actor, entry.surface, entry.actor_user_id) for entry in entries} == {
        ("operator", "cli", people.operator.pk)
    }
    assert all("the disk\nwas full" in entry.reason for entry in entries)
    assert command("queue_doctor").code == 0


def test_what_is_left_for_an_operator_ends_with_2(tmp_path: Path, people: People) -> None:
    run, _ = to_pause(write_spec(tmp_path, ASKING))
    attempt(run)
    run.events.get(number=1).delete()
    told = command("queue_doctor", "--fix", "--as", "operator")
    assert told.code == 2
    assert "events_missing" in told.out
    assert "to do" in told.out
    assert told.out.endswith("1 mended. 1 mismatch: 1 left for an operator.\n")


def test_json_is_one_object_with_everything(tmp_path: Path, people: People) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    change_request(key, digest="1:other")
    run.events.get(number=1).delete()
    told = command("queue_doctor", "--fix", "--as", "operator", "--json")
    assert told.code == 2
    answer = told.object()
    assert answer["success"] is False
    assert [(one["code"], one["state"], one["run"]) for one in answer["findings"]] == [
        ("request_differs", "mended", str(run.uuid)),
        ("events_missing", "found", str(run.uuid)),
    ]
    assert "fix" in answer["findings"][0]
    assert answer["findings"][1]["since"].endswith("Z")
    assert "move" in answer["findings"][1]


def test_only_who_operates_runs_may_mend(tmp_path: Path, people: People) -> None:
    to_pause(write_spec(tmp_path, ASKING))
    StateRecord.objects.all().delete()
    for words in ([], ["--as", "approver"], ["--as", "nobody"]):
        told = command("queue_doctor", "--fix", *words)
        assert (told.code, told.out) == (2, "")
    assert command("queue_doctor", "--fix", "--as", "approver", "--json").object()["code"] == "not_allowed"
    assert command("queue_doctor", "--reason", "x").code == 64
    assert Run.objects.get().status == Status.AWAITING


def test_many_of_one_kind_are_counted_and_json_has_them_all(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, ASKING)
    for _ in range(23):
        run = begin(spec)
        Run.objects.filter(pk=run.pk).update(status=Status.AWAITING)
    told = command("queue_doctor")
    assert told.out.count("waits_for_nothing  run") == 20
    assert "waits_for_nothing: 3 more like this" in told.out
    assert len(command("queue_doctor", "--json").object()["findings"]) == 23


#: Everyday a look that takes little for recent; a proving run has the usual look, and as many rows as a large house.
LOOK = Scope() if PROVE else Scope(recent=100, page=50)
FINISHED, WAITING = count(400, 1_000_000), count(60, 100_000)


@pytest.mark.timeout(count(120, 3600))
def test_what_has_ended_long_ago_costs_nothing_and_what_waits_a_page_more(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    run, _ = to_pause(write_spec(tmp_path, ASKING))
    few, _ = looked(LOOK)
    finished(run, FINISHED)
    some, seconds = looked(LOOK)
    assert some <= few + 12 * LOOK.recent / LOOK.page
    again, _ = looked(LOOK)
    assert again == some
    waiting(run, WAITING)
    many, longer = looked(LOOK)
    assert many <= some + 20 * (1 + WAITING / LOOK.page)
    whole, longest = looked(Scope(everything=True, page=LOOK.page))
    assert whole > many
    report(
        f"{DATABASE}: {some} statements, {seconds:.1f} s beside {FINISHED} finished runs; {many}, {longer:.1f} s with "
        f"{WAITING} waiting ones; --all {whole}, {longest:.1f} s"
    )


def looked(scope: Scope) -> tuple[int, float]:
    """How many statements one look is, and how long it took; it finds nothing."""
    began = time.monotonic()
    with CaptureQueriesContext(connection) as queries:
        assert examine(scope).left == []
    return len(queries), time.monotonic() - began


def in_parts(number: int) -> Iterator[range]:
    for start in range(0, number, 10_000):
        yield range(start, min(number, start + 10_000))


def a_copy(run: Run, **columns: Any) -> Run:
    moment = now()
    given = {"agent_id": run.agent_id, "spec_hash": run.spec_hash, "created_at": moment, "queued_at": moment}
    return Run(**given | columns)


def finished(run: Run, number: int) -> None:
    """So many runs that ended and were pruned."""
    for part in in_parts(number):
        ended = {"status": Status.COMPLETED, "ended_at": now(), "pruned_at": now()}
        Run.objects.bulk_create([a_copy(run, **ended) for _ in part], batch_size=1000)


def waiting(run: Run, number: int) -> None:
    """So many runs that wait as this one does, each with a request and a record."""
    entry = StateRecord.objects.values().get()
    asked = ApprovalRequest.objects.values().get()
    for part in in_parts(number):
        runs = Run.objects.bulk_create([a_copy(run, status=Status.AWAITING, step=run.step) for _ in part], 1000)
        keys = [uuid.uuid4() for _ in part]
        requests = [
            ApprovalRequest(**asked | {"id": None, "key": key, "run_id": one.pk})
            for key, one in zip(keys, runs, strict=True)
        ]
        ApprovalRequest.objects.bulk_create(requests, batch_size=1000)
        records = [StateRecord(**entry | {"id": None, "key": f"approval:{key}"}) for key in keys]
        StateRecord.objects.bulk_create(records, batch_size=1000)


def test_the_page_of_operations_explains_every_code() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([a-z_]+)`", page.partition("## Repair")[2].partition("\n## ")[0], re.MULTILINE))
    assert told == {code for check in registered() for code in check.codes}
