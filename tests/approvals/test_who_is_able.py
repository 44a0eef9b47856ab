"""Who could decide, asked when a gate opens: in any host project, and only where the policy says something of it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import BaseUserManager, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import eligible
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.policies import a_sign, member, text_of, written
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, acting, begin, to_pause, work, write_spec
from workflows.models import Status
from workflows.runs import newest
from workflows.spec.policy_model import Policy

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_host_projects_own_manager_of_users_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`with_perm` is of `UserManager`; a custom user has a `BaseUserManager` as a rule."""
    asha, bo = member("asha", "finance"), member("bo", "finance")
    manager: Any = BaseUserManager()
    manager.model = User
    monkeypatch.setattr(User, "objects", manager)
    to_pause(write_spec(tmp_path, ASKING, agent_id="plain", name="plain.yaml"))
    run, key = to_pause(a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2}"))
    for user in (asha, bo):
        decide(key, approved=True, actor=acting(user))
    assert newest(run).status == Status.QUEUED


def test_a_policy_that_says_nothing_of_who_decides_asks_for_nobody(tmp_path: Path) -> None:
    run, key = to_pause(write_spec(tmp_path, ASKING))
    for plain in (Policy(), Policy(require_reason="always", expires_in=60)):
        with CaptureQueriesContext(connection) as caught:
            assert eligible.doubt(plain, run) == ""
        assert len(caught) == 0
    assert ApprovalRequest.objects.get(key=key).doubt == ""


def test_a_process_of_the_version_before_can_write_a_request(tmp_path: Path) -> None:
    """It does not know the columns of this one: the database fills them."""
    _, key = to_pause(write_spec(tmp_path, ASKING))
    request = ApprovalRequest.objects.get(key=key)
    unknown = {"id", "mode", "doubt"}
    known = [field for field in ApprovalRequest._meta.concrete_fields if field.column not in unknown]
    other = uuid.uuid4()
    request.key = other
    values = [field.get_db_prep_save(getattr(request, field.attname), connection) for field in known]
    with connection.cursor() as cursor:
        columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in known)
        marks = ", ".join(["%s"] * len(known))
        cursor.execute(f"INSERT INTO approvals_approvalrequest ({columns}) VALUES ({marks})", values)
    written_then = ApprovalRequest.objects.get(key=other)
    assert (written_then.mode, written_then.doubt) == ("gate", "")


def test_two_records_of_one_name_that_rules_decided_have_a_proof_each(tmp_path: Path) -> None:
    auto = 'mode: record, auto: {approve_if: "true"}'
    one, two = (f'{{step: sign, type: approval, message: "{text}?", {auto}}}' for text in ("This", "That"))
    with FakeTools({"POST /last": {"json": {}}}) as tools:
        run = begin(written(tmp_path, text_of(f"{one}\n    - {two}", url=tools.url)))
        work()
    run.refresh_from_db()
    assert run.status == Status.COMPLETED, run.error
    proofs = AuditEntry.objects.filter(act="decide", surface="rule")
    assert (proofs.count(), proofs.values("digest").distinct().count()) == (2, 2)
