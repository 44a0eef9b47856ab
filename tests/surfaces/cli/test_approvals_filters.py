"""`approvals list` narrowed, as `GET /approvals` is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approvals.policies import a_sign, member
from tests.conftest import Clock, People
from tests.surfaces.admin import scenes
from tests.surfaces.cli.running import command
from tests.workbench import to_pause

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_filter_narrows_the_list(tmp_path: Path, people: People, clock: Clock) -> None:
    _, old = to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    clock.advance(2 * 3600)
    _, hasty = to_pause(a_sign(tmp_path, "expires_in: 30m"))
    _, other = to_pause(scenes.asking(tmp_path, agent_id="other"), input="a parcel")
    member("asha", "finance")

    def found(*options: str, who: str = "approver") -> list[str]:
        answer = command("approvals", "list", "--as", who, "--json", *options)
        assert answer.code == 0, answer.err
        return [line["key"] for line in answer.object()["approvals"]]

    assert found() == [old, hasty, other]
    assert found("--agent", "other") == [other]
    assert found("--step", "sign") == [old, hasty]
    assert found("--group", "finance") == [old]
    assert found("--mine") == [hasty, other]
    assert found("--mine", who="asha") == [old, hasty, other]
    assert found("--older-than", "1h") == [old]
    assert found("--expires-within", "1h", "--step", "sign") == [hasty]
    assert found("--search", "PARCEL") == [other]
    assert found("--search", old) == [old]
    assert "Nothing that waits fits." in command("approvals", "list", "--as", "approver", "--agent", "none").out


def test_a_length_of_time_without_a_unit_is_wrong_use(people: People) -> None:
    said = command("approvals", "list", "--as", "approver", "--older-than", "2")
    assert said.code == 64
    assert "no length of time" in said.err
