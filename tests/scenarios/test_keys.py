"""A key opens its own request and nothing beside it; who guesses learns nothing (scenarios 4 and 41)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from approvals.models import ApprovalRequest, AuditEntry
from tests.approvals.policies import text_of, written
from tests.conftest import People
from tests.counts import count
from tests.crash.refusing import rows
from tests.surfaces.api.conftest import Caller, with_token
from tests.surfaces.cli.running import command
from tests.surfaces.slack.conftest import Channel, asking
from tests.workbench import ASKING, begin, to_pause, work, write_spec
from workflows.models import Status
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = count(40, 1000)


@pytest.fixture
def approver(people: People) -> Caller:
    return with_token(people.approver)


def approve(caller: Caller, path: str, **more: Any) -> Any:
    return caller.post(f"{path}/approve?wait=0", {"approved": True, **more})


def test_keys_are_random_and_tell_no_order(tmp_path: Path, report: Callable[[str], None]) -> None:
    """Scenario 41: 122 random bits each, and nothing of one in another."""
    spec = write_spec(tmp_path, ASKING)
    keys = [uuid.UUID(to_pause(spec, input="the same")[1]) for _ in range(KEYS)]
    assert {(key.version, key.variant) for key in keys} == {(4, uuid.RFC_4122)}
    assert len({key.hex[:12] for key in keys}) == len({key.hex[-12:] for key in keys}) == KEYS
    rising = sum(earlier < later for earlier, later in pairwise(keys))
    assert KEYS / 4 < rising < KEYS * 3 / 4, "they come in no order"
    for place in range(32):
        if place not in (12, 16):  # version and variant
            assert len({key.hex[place] for key in keys}) > 8
    report(f"{KEYS} keys: no order, no overlap, every place in use")


def test_a_changed_key_is_like_one_that_never_was(approver: Caller, tmp_path: Path) -> None:
    """Scenario 41, over REST and at a terminal; `links/test_reading.py` has the links."""
    run, key = to_pause(write_spec(tmp_path, ASKING))
    unknown = str(uuid.uuid4())
    before = rows()

    def answers(one: str) -> tuple[str, str, str]:
        posted, shown = approve(approver, f"/approvals/{one}"), approver.get(f"/approvals/{one}")
        typed = command("approvals", "approve", one, "--as", "approver")
        assert (posted.status_code, shown.status_code, typed.code) == (404, 404, 2)
        told = (posted.content.decode(), shown.content.decode(), typed.err)
        return told[0].replace(one, "*"), told[1].replace(one, "*"), told[2].replace(one, "*")

    for place in (0, 7, 20, 35):
        assert answers(key[:place] + ("0" if key[place] != "0" else "1") + key[place + 1 :]) == answers(unknown)
    assert rows() == before
    assert newest(run).status == Status.AWAITING


def test_one_answer_does_not_open_its_neighbour(approver: Caller, tmp_path: Path) -> None:
    """Scenario 4, as far as there is something to fan out: three runs of one step with equal payloads."""
    spec = write_spec(tmp_path, ASKING)
    (first, _), (second, key), (third, _) = waits = [to_pause(spec, input="the same") for _ in range(3)]
    requests = {run.pk: ApprovalRequest.objects.get(run=run) for run, _ in waits}
    assert len({request.digest for request in requests.values()}) == 1
    assert len({request.key for request in requests.values()}) == 3
    assert approve(approver, f"/approvals/{key}").status_code == 200
    assert [newest(run).status for run in (first, second, third)] == [Status.AWAITING, Status.QUEUED, Status.AWAITING]
    assert approve(approver, f"/runs/{second.uuid}").json()["code"] == "nothing_pending"
    assert work() == 1
    again = ApprovalRequest.objects.get(run=newest(second))
    assert again.key != requests[second.pk].key, "its next gate asks under a key of its own"
    assert approve(approver, f"/approvals/{key}").json()["code"] == "approval_not_found"
    assert newest(second).status == Status.AWAITING


def test_a_run_alone_opens_its_gate_and_no_record_beside_it(approver: Caller, tmp_path: Path) -> None:
    """Scenario 4: what is only recorded is decided by its own key."""
    text = text_of('{step: note, type: approval, message: "Noted?", mode: record}')
    text = text.replace(
        "    - {step: last, type: tool, tool: last}", '    - {step: sign, type: approval, message: "Go?"}'
    )
    run = begin(written(tmp_path, text))
    work()
    assert newest(run).status == Status.AWAITING
    assert approve(approver, f"/runs/{run.uuid}").status_code == 200
    assert [(entry.act, entry.step) for entry in AuditEntry.objects.all()] == [("decide", "sign")]
    work()
    assert newest(run).status == Status.COMPLETED
    assert ApprovalRequest.objects.get(mode="record").status == "open"
    refused = approve(approver, f"/runs/{run.uuid}")
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_pending")


def test_a_key_with_what_belongs_to_another_decides_neither(approver: Caller, channel: Channel, tmp_path: Path) -> None:
    """Scenario 41: the key of one with the id, the digest or the card of the other."""
    one, key, card = channel.card(asking(tmp_path), input="one")
    other, other_key, other_card = channel.card(asking(tmp_path), input="other")
    digest = ApprovalRequest.objects.get(key=other_key).digest
    before = rows()
    refused = approve(approver, f"/approvals/{key}", digest=digest)
    assert (refused.status_code, refused.json()["code"]) == (409, "action_changed")
    refused = approve(approver, f"/approvals/{key}", run=str(other.uuid))
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "run")
    mixed = {
        **card,
        "blocks": [block if block["type"] != "actions" else _buttons(other_card) for block in card["blocks"]],
    }
    for block in mixed["blocks"]:
        if block["type"] == "actions":
            block["block_id"] = next(one["block_id"] for one in card["blocks"] if one["type"] == "actions")
    channel.approver.press(mixed)
    assert "not what this card showed" in channel.replies(2)[0]["text"]
    assert rows() == before
    assert [newest(run).status for run in (one, other)] == [Status.AWAITING] * 2


def _buttons(card: dict[str, Any]) -> dict[str, Any]:
    return dict(next(block for block in card["blocks"] if block["type"] == "actions"))
