"""`GET /approvals` narrowed: every filter, alone and together, and what is no value of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approvals.policies import a_sign, member
from tests.conftest import Clock, People
from tests.surfaces.admin import scenes
from tests.surfaces.api.conftest import Caller, Callers, with_token
from tests.surfaces.api.test_errors import check
from tests.workbench import to_pause

pytestmark = pytest.mark.django_db


def test_every_filter_narrows(tmp_path: Path, callers: Callers, people: People, clock: Clock) -> None:
    _, old = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    clock.advance(2 * 3600)
    _, hasty = to_pause(a_sign(tmp_path, "expires_in: 30m"))
    run, other = to_pause(scenes.asking(tmp_path, agent_id="other"), input="a Parcel")

    def found(query: str, caller: Caller = callers.approver) -> list[str]:
        answer = caller.get(f"/approvals?{query}")
        assert answer.status_code == 200, answer.json()
        return [line["key"] for line in answer.json()["approvals"]]

    assert found("") == [old, hasty, other]
    assert found("agent=other") == [other]
    assert found(f"run={run.uuid}") == [other]
    assert found("step=sign") == [old, hasty]
    assert found("group=finance") == [old]
    assert found("group=nobody") == []
    assert found("mine=1") == [hasty, other]
    assert found("mine=0") == [old, hasty, other]
    assert found("mine=1", with_token(member("asha", "finance"))) == [old, hasty, other]
    assert found("mine=1", callers.operator) == [], "sees all and decides nothing"
    assert found("olderThan=90m") == [old]
    assert found("expiresWithin=1h") == [hasty]
    assert found("q=pARCEL") == [other]
    assert found(f"q={old}") == [old]
    assert found("step=sign&mine=1&expiresWithin=1d&limit=1") == [hasty]


@pytest.mark.parametrize(
    "query",
    [
        "olderThan=2",
        "olderThan=soon",
        "expiresWithin=0h",
        "expiresWithin=-1h",
        "olderThan=99999999d",
        "mine=me",
        "q=",
        "agent=",
        "group=",
        "run=x",
        "q=" + "x" * 101,
        "q=%00",
        "older=1h",
        "status=open",
    ],
)
def test_what_is_no_filter_or_no_value_of_one_is_refused(query: str, callers: Callers) -> None:
    check(callers.approver.get(f"/approvals?{query}"), "invalid")


def test_a_filter_tells_nothing_to_those_who_may_not_look(callers: Callers, tmp_path: Path) -> None:
    to_pause(a_sign(tmp_path, "require_reason: never"))
    check(callers.stranger.get("/approvals?mine=1"), "not_allowed")
    check(callers.nobody.get("/approvals?q=x"), "not_authenticated")
