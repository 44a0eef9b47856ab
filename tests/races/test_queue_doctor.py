"""`queue_doctor` beside people and workers who start, pause, vote, decide, withdraw, cancel, expire: no false alarm."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from approvals import audit
from approvals.expiry import expire_due
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.recall import withdraw
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import member, text_of
from tests.conftest import People
from tests.counts import count
from tests.damaged import BY
from tests.databases import DATABASE
from tests.workbench import ASKING, acting, begin, write_spec
from workflows import beats
from workflows.advance import advance
from workflows.errors import Refusal
from workflows.models import Run, Status
from workflows.registry import SpecFile, read_spec
from workflows.repair.contributed import registered
from workflows.repair.examination import Examined, examine
from workflows.repair.findings import Scope, snapshot
from workflows.runs import cancel_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = count(2, 60)
THREADS = 4
LASTS = "{step: last, type: approval}"


class Everybody:
    """One thread's work: a case from its start to some end, by one of the ways there are."""

    def __init__(self, specs: dict[str, SpecFile], people: People, seed: int) -> None:
        self.specs, self.people = specs, people
        self.other = acting(people.operator)
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()

    def turn(self) -> None:
        """Start one, pause it, and bring it further."""
        way = self.random.choice([self.approve, self.reject, self.cancel, self.vote, self.take_back, self.expire])
        way()
        self.done[way.__name__] += 1
        if self.random.random() < 0.2:
            audit.seal()

    def paused(self, spec: str) -> tuple[Run, str]:
        run = begin(self.specs[spec])
        advance(run.workspace, str(run.uuid))
        return run, str(ApprovalRequest.objects.get(run=run, status=RequestStatus.OPEN).key)

    def decided(self, key: str, *, approved: bool, by: Any = None) -> None:
        decide(key, approved=approved, actor=acting(by or self.people.approver), reason="r")

    def approve(self) -> None:
        run, key = self.paused("asking")
        self.decided(key, approved=True)
        advance(run.workspace, str(newest(run).uuid))

    def reject(self) -> None:
        self.decided(self.paused("asking")[1], approved=False)

    def cancel(self) -> None:
        cancel_run(self.paused("asking")[0], actor=self.other, reason="no")

    def vote(self) -> None:
        run, key = self.paused("several")
        self.decided(key, approved=True)
        self.decided(key, approved=True, by=self.people.requester)
        advance(run.workspace, str(newest(run).uuid))

    def take_back(self) -> None:
        _, key = self.paused("recalled")
        self.decided(key, approved=True)
        withdraw(key, actor=acting(self.people.approver), reason="wrong")

    def expire(self) -> None:
        self.paused("short")
        expire_due()


def specs(folder: Path) -> dict[str, SpecFile]:
    policies = {"several": "approvers: {quorum: 2}", "recalled": "recall: 10m", "short": "expires_in: 1s"}
    found = {"asking": write_spec(folder, ASKING, agent_id="asking")}
    for name, policy in policies.items():
        path = folder / f"{name}.yaml"
        text = text_of(f"{{step: sign, type: approval, {policy}}}").replace("id: clerk", f"id: {name}")
        path.write_text(text.replace("{step: last, type: tool, tool: last}", LASTS))
        found[name] = read_spec(path)
    return found


def test_a_healthy_busy_system_has_nothing_wrong_and_nothing_mended(
    tmp_path: Path, people: People, report: Callable[[str], None]
) -> None:
    people = People(**vars(people) | {"requester": member("second"), "approver": member("first")})
    served, stop, errors = specs(tmp_path), threading.Event(), []
    workers = [Everybody(served, people, seed) for seed in range(THREADS)]

    def busy(one: Everybody) -> None:
        try:
            while not stop.is_set():
                one.turn()
        except Refusal as refusal:  # pragma: no cover
            errors.append(repr(refusal))
        except Exception as error:  # noqa: BLE001  (whatever reaches a caller is what the test is about)
            errors.append(repr(error))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=busy, args=(one,)) for one in workers]
    for thread in threads:
        thread.start()
    looks, end = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            beats.beat()  # the threads are workers as well
            for by in (None, BY):
                examined = examine(Scope(everything=looks % 2 == 1, page=20), by)
                assert (examined.mended, examined.left) == ([], [])
                looks += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert errors == []
    assert examine(Scope(everything=True)).left == []
    assert not AuditEntry.objects.filter(act="repair").exists()
    done = sum((one.done for one in workers), Counter[str]())
    assert set(done) == {"approve", "reject", "cancel", "vote", "take_back", "expire"} or sum(done.values()) < 60
    assert looks >= 2
    report(f"{looks} looks beside {sum(done.values())} cases of {THREADS} threads on {DATABASE}: no false alarm")


@pytest.mark.parametrize(("check", "looks"), [("waiting runs", 2), ("chains", 1), ("events", 1)])
def test_what_happens_while_a_case_is_judged_is_no_finding(
    tmp_path: Path, people: People, check: str, looks: int
) -> None:
    """Decided, or driven to its pause, after the first look or two: the snapshot shows all of before."""
    spec = write_spec(tmp_path, ASKING)
    run = begin(spec)
    if check != "events":
        advance(run.workspace, str(run.uuid))
    request = ApprovalRequest.objects.first()

    def act() -> None:
        try:
            if request is None:
                advance(run.workspace, str(run.uuid))
            else:
                decide(str(request.key), approved=True, actor=acting(people.approver))
        finally:
            connections.close_all()

    thread = threading.Thread(target=act)

    seen: list[str] = []

    def after_some(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if sql.startswith("SELECT"):
            seen.append(sql)
        if len(seen) == looks and thread.ident is None:
            thread.start()
            thread.join(0.2 if DATABASE == "sqlite" else 20)  # on SQLite it waits for the judge
        return answer

    judge = next(one for one in registered() if one.name == check).judge
    with connection.execute_wrapper(after_some), snapshot():
        assert judge(run.pk) is None
    thread.join(30)
    run.refresh_from_db()
    assert run.status == (Status.AWAITING if check == "events" else Status.RESUMED), "it was done meanwhile"
    assert judge(run.pk) is None


def test_two_that_mend_at_once_mend_each_case_once(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    for _ in range(8):
        run = begin(spec)
        advance(run.workspace, str(run.uuid))
    StateRecord.objects.all().delete()
    told: list[Examined] = []

    def doctor() -> None:
        try:
            told.append(examine(Scope(), BY))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=doctor) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(len(one.mended) for one in told) == 8
    assert [one.left for one in told] == [[], []]
    assert AuditEntry.objects.filter(act="repair", key="").count() == 8
    assert set(Run.objects.values_list("status", flat=True)) == {Status.QUEUED}
