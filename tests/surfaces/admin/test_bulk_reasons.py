"""Many rows at once where some want more than a yes: a reason is asked for before anything is done; filters stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest, AuditEntry
from tests.approvals.policies import a_sign
from tests.conftest import People
from tests.surfaces.admin.conftest import QUEUE
from tests.surfaces.admin.test_bulk import BULK
from tests.surfaces.forms import answering
from tests.workbench import to_pause

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _pk(key: str) -> int:
    return ApprovalRequest.objects.get(key=key).pk


def _confirmed(act: str, keys: list[str], **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"act": act, "confirmed": "yes", "pick": [",".join(str(_pk(key)) for key in keys)]}
    return fields | {f"digest-{_pk(key)}": ApprovalRequest.objects.get(key=key).digest for key in keys} | more


@pytest.mark.parametrize(("act", "needing"), [("approve", "1 of these rows is"), ("reject", "2 of these rows are")])
def test_a_reason_that_some_rows_need_is_asked_for_before_any_is_decided(
    act: str, needing: str, tmp_path: Path, approver: Client
) -> None:
    keys = [to_pause(a_sign(tmp_path, f"require_reason: {when}"))[1] for when in ("never", "reject", "always")]
    shown = approver.post(BULK, {"act": act, "pick": [_pk(key) for key in keys]}).content.decode()
    assert "Reason (needed)" in shown
    unsaid = approver.post(BULK, _confirmed(act, keys, reason=" "))
    assert unsaid.status_code == 400
    assert f"{needing} not decided without a reason." in unsaid.content.decode()
    assert not AuditEntry.objects.exists()
    if act == "reject":
        done = approver.post(BULK, _confirmed(act, keys, reason="as agreed"))
        assert [row["badge"].text for row in done.context["results"]] == ["done"] * 3


def test_a_row_with_a_form_is_told_and_wants_no_reason_of_the_others(tmp_path: Path, approver: Client) -> None:
    _, form = to_pause(answering(tmp_path, more="      require_reason: always\n"))
    _, plain = to_pause(a_sign(tmp_path, "require_reason: never"))
    shown = approver.post(BULK, {"act": "approve", "pick": [f"{_pk(form)},{_pk(plain)}"]}).content.decode()
    assert "It has a form, so it is not approved from here: open it to answer." in shown
    assert "Reason (needed)" not in shown
    done = approver.post(BULK, _confirmed("approve", [form, plain]))
    assert [row["badge"].text for row in done.context["results"]] == ["refused", "done"]


def test_afterwards_it_leads_back_to_the_same_filters(tmp_path: Path, approver: Client) -> None:
    _, key = to_pause(a_sign(tmp_path, "require_reason: never"))
    assert (
        'name="back" value="agent=clerk&amp;q=really"' in approver.get(f"{QUEUE}?agent=clerk&q=really").content.decode()
    )
    shown = approver.post(BULK, {"act": "approve", "pick": [_pk(key)], "back": "agent=clerk&q=really&after=3"})
    assert f'href="{QUEUE}?agent=clerk&amp;q=really"' in shown.content.decode()
    done = approver.post(BULK, _confirmed("approve", [key], back="agent=clerk&q=really"))
    assert f'href="{QUEUE}?agent=clerk&amp;q=really"' in done.content.decode()
    elsewhere = approver.post(BULK, {"act": "approve", "back": "https://evil.example/?x=1"})
    assert elsewhere.headers["Location"].startswith(f"{QUEUE}?")


def test_one_tick_for_several_reaches_as_far_as_many_ticks(tmp_path: Path, approver: Client) -> None:
    keys = [to_pause(a_sign(tmp_path, "require_reason: never"), input=str(number))[1] for number in range(3)]
    ids = [_pk(key) for key in keys]
    page = approver.post(BULK, {"act": "reject", "pick": [f"{ids[2]},x,,{ids[0]}", str(ids[0]), str(ids[1])]})
    assert [row["pk"] for row in page.context["rows"]] == [ids[2], ids[0], ids[1]]
