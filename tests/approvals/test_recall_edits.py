"""What a withdrawn approval was given with: edits that stood, whose they were, and the outputs ahead of the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from approvals.editing import edit_request
from approvals.models import ApprovalRequest, Edit
from approvals.queue import detail
from approvals.recall import withdraw
from approvals.services import decide
from statestore.models import StateRecord
from tests.approvals.policies import ANSWERS, member, text_of, written
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.engine import jsontext
from workflows.errors import NotAllowed
from workflows.models import Run
from workflows.reading import run_state

pytestmark = pytest.mark.django_db(transaction=True)

SUM = "{step: sum, type: tool, tool: look}\n    - {step: sign, type: tool, tool: pay}"
BODY = 'body: {json: {amount: "{{ sum.amount }}"}}'
LOOKS: dict[str, Any] = {**ANSWERS, "GET /look": {"json": {"amount": 120, "note": "as agreed"}}}


def editable(folder: Path, tools: FakeTools, more: str = "") -> tuple[Run, str]:
    policy = f'recall: 10m, editable: ["sum.amount", "sum.note"]{more}'
    pay = f"approval: {{{policy}}}, {BODY}"
    return to_pause(written(folder, text_of(SUM, url=tools.url, pay=pay)))


def sent(tools: FakeTools) -> list[Any]:
    return [jsontext.loads(request.body.decode()) for request in tools.requests if request.url.endswith("/pay")]


def test_the_edits_with_which_it_was_approved_still_stand(tmp_path: Path, people: People, clock: Clock) -> None:
    with FakeTools(LOOKS) as tools:
        run, key = editable(tmp_path, tools)
        first = detail(key, acting(people.approver))
        decide(key, approved=True, edits={"sum.amount": 90}, actor=acting(people.approver))
        again = str(withdraw(key, actor=acting(people.approver), reason="look again").key)
        shown = detail(again, acting(people.approver))
        assert shown["action"] != first["action"]
        assert jsontext.dumps(shown["action"]).count("90") == 1
        assert shown["digest"] != first["digest"]
        decide(again, approved=True, digest=shown["digest"], actor=acting(people.approver))
        clock.advance(601)
        work()
        assert run_state(run)["status"] == "completed"
        assert sent(tools) == [{"amount": 90}]


def test_and_can_be_taken_back_as_any_others(tmp_path: Path, people: People, clock: Clock) -> None:
    """The outputs as they were before the edits are still there to go back to."""
    with FakeTools(LOOKS) as tools:
        run, key = editable(tmp_path, tools)
        decide(key, approved=True, edits={"sum.amount": 90}, actor=acting(people.approver))
        again = str(withdraw(key, actor=acting(people.approver), reason="look again").key)
        decide(again, approved=True, edits={"sum.amount": 120}, actor=acting(people.approver))
        clock.advance(601)
        work()
        assert run_state(run)["status"] == "completed"
        assert sent(tools) == [{"amount": 120}]


def test_whoever_proposed_them_may_still_not_approve_them_alone(tmp_path: Path, people: People) -> None:
    with FakeTools(LOOKS) as tools:
        asha, bo = member("asha"), member("bo")
        _, key = editable(tmp_path, tools, ", approvers: {four_eyes: true}")
        edit_request(key, edits={"sum.amount": 90}, actor=acting(asha), reason="too much")
        decide(key, approved=True, actor=acting(bo))
        again = withdraw(key, actor=acting(bo), reason="look again")
        assert [edit.user_id for edit in Edit.objects.filter(request=again)] == [asha.pk]
        with pytest.raises(NotAllowed, match="four eyes"):
            decide(str(again.key), approved=True, actor=acting(asha))


def test_each_value_is_kept_once_and_no_longer_than_the_recall(tmp_path: Path, people: People, clock: Clock) -> None:
    with FakeTools(LOOKS) as tools:
        _, key = editable(tmp_path, tools)
        decide(key, approved=True, actor=acting(people.approver))
        kept = StateRecord.objects.get(key=f"recall:{key}")
        assert "as agreed" not in kept.value, "the successor has it"
        assert kept.expires_at is not None
        recall_until = ApprovalRequest.objects.get(key=key).recall_until
        assert recall_until is not None
        assert 0 < (kept.expires_at - recall_until).total_seconds() <= 301
        withdraw(key, actor=acting(people.approver), reason="look again")
        assert not StateRecord.objects.filter(key__startswith="recall:").exists()
