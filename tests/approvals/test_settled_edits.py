"""An edit of an earlier output that was approved once and asked for again: no later edit makes it nobody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.editing import edit_request
from approvals.models import Edit
from approvals.queue import detail
from approvals.rebinding import rebind
from approvals.services import decide
from tests.approvals.editables import EDITABLE, a_payment
from tests.approvals.rebinding import DRAFT, INSERTED, rewrite
from tests.conftest import Clock
from tests.fakes_tools import FakeTools
from tests.workbench import acting, key_of, to_pause, work
from workflows.errors import Invalid, NotAllowed
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = "approvers: {four_eyes: true}, valid_for: 1h"
WHO: dict[str, Any] = {"draft.who": "Mallory"}
RED: dict[str, Any] = {"action.query.team": "red"}


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    return a_payment(tmp_path, tools.url, POLICY)


def asked_again(spec: SpecFile, clock: Clock, proposer: User, approver: User) -> tuple[Run, str]:
    """What `proposer` changed is approved, and comes to its end before anything is called."""
    run, key = to_pause(spec)
    edit_request(key, edits=WHO, actor=acting(proposer), reason="her")
    decide(key, approved=True, actor=acting(approver))
    clock.advance(3601)
    work()
    return run, key_of(newest(run))


def changes(key: str, user: User) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = detail(key, acting(user))["edits"]["changes"]
    return found


def stays_proposed_by(key: str, user: User) -> None:
    assert Edit.objects.filter(request__key=key, user_id=user.pk).exists()
    with pytest.raises(NotAllowed, match="four eyes: whoever proposed the edit"):
        decide(key, approved=True, actor=acting(user))


def test_the_value_as_it_stands_is_no_way_to_take_it_back(spec: SpecFile, clock: Clock, asha: User, ben: User) -> None:
    _, key = asked_again(spec, clock, asha, ben)
    with pytest.raises(Invalid, match="these values stand already"):
        edit_request(key, edits=WHO, actor=acting(asha))
    stays_proposed_by(key, asha)


def test_nor_is_another_edit_and_its_end(spec: SpecFile, clock: Clock, tools: FakeTools, asha: User, ben: User) -> None:
    run, key = asked_again(spec, clock, asha, ben)
    shown = detail(key, acting(asha))
    edit_request(key, edits=RED, actor=acting(asha))
    before = {"path": "action.query.team", "before": "blue", "after": "red"}
    assert changes(key, ben) == [{"path": "draft.who", "after": "Mallory"}, before]
    edit_request(key, edits={"action.query.team": "blue"}, actor=acting(asha))
    again = detail(key, acting(asha))
    assert (again["digest"], again["edits"]["changes"]) == (shown["digest"], shown["edits"]["changes"])
    stays_proposed_by(key, asha)
    decide(key, approved=True, actor=acting(ben), digest=shown["digest"])
    work()
    assert newest(run).status == Status.COMPLETED
    assert [request.json()["to"] for request in tools.requests if "/pay" in request.url] == ["for Mallory"]


def test_changed_further_it_stays_an_edit_of_both(
    spec: SpecFile, clock: Clock, tools: FakeTools, asha: User, ben: User
) -> None:
    run, key = asked_again(spec, clock, asha, ben)
    edit_request(key, edits={"draft.who": "Olga"}, actor=acting(ben))
    edit_request(key, edits=WHO, actor=acting(ben))
    assert changes(key, asha) == [{"path": "draft.who", "after": "Mallory"}]
    stays_proposed_by(key, asha)
    stays_proposed_by(key, ben)
    decide(key, approved=False, actor=acting(ben))
    assert newest(run).status == Status.REJECTED
    assert [request.url for request in tools.requests if "/pay" in request.url] == []


def test_asked_for_a_third_time_it_is_still_theirs(spec: SpecFile, clock: Clock, asha: User, ben: User) -> None:
    run, key = asked_again(spec, clock, asha, ben)
    edit_request(key, edits=RED, actor=acting(asha))
    decide(key, approved=True, actor=acting(ben))
    clock.advance(3601)
    work()
    third = key_of(newest(run))
    edit_request(third, edits={"action.query.team": "blue"}, actor=acting(asha))
    assert changes(third, ben) == [{"path": "draft.who", "after": "Mallory"}]
    stays_proposed_by(third, asha)


def test_nor_does_a_changed_spec_make_it_nobodys(
    spec: SpecFile, clock: Clock, tools: FakeTools, asha: User, ben: User, olga: User
) -> None:
    run, key = asked_again(spec, clock, asha, ben)
    edit_request(key, edits=RED, actor=acting(asha))
    rewrite(spec, ("    - {step: pay,", INSERTED))
    rebind(key, actor=acting(olga), reason="new version")
    assert changes(key, ben) == [{"path": "draft.who", "after": "Mallory"}]
    stays_proposed_by(key, asha)
    edit_request(key, edits=RED, actor=acting(asha))
    edit_request(key, edits={"action.query.team": "blue"}, actor=acting(asha))
    stays_proposed_by(key, asha)
    decide(key, approved=True, actor=acting(ben))
    work()
    assert newest(run).status == Status.COMPLETED
    assert [request.json()["to"] for request in tools.requests if "/pay" in request.url] == ["for Mallory"]


def test_a_spec_without_its_step_and_back_again_keeps_them(
    spec: SpecFile, clock: Clock, asha: User, ben: User, olga: User
) -> None:
    _, key = asked_again(spec, clock, asha, ben)
    without = spec.text.replace(DRAFT, "").replace("{{ draft.amount }}", "1").replace("{{ draft.who }}", "all")
    without = without.replace(EDITABLE, "editable: [action.query.team]")
    spec.path.write_text(without, encoding="utf-8")
    rebind(key, actor=acting(olga), reason="shorter")
    assert "edits" not in detail(key, acting(ben))
    stays_proposed_by(key, asha)
    spec.path.write_text(spec.text, encoding="utf-8")
    rebind(key, actor=acting(olga), reason="and back")
    assert changes(key, ben) == [{"path": "draft.who", "after": "Mallory"}]
    stays_proposed_by(key, asha)
