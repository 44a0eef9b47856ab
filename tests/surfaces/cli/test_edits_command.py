"""`approvals edit`, `approve --edits`, `rebind`, and what `show` tells of edits and of a changed spec."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, AuditEntry
from tests.approvals.editables import ANSWERS, a_payment
from tests.approvals.policies import member
from tests.conftest import allow
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import command
from tests.workbench import to_pause
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

LESS = '{"action.body.json.amount": 100}'


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    with FakeTools(ANSWERS) as tools:
        monkeypatch.setenv("PAY_HOST", tools.url)
        monkeypatch.setenv("PAY_TOKEN", "tok-canary")
        yield tools


@pytest.fixture
def asha(db: None) -> User:
    return member("asha")


@pytest.fixture
def spec(tmp_path: Path, tools: FakeTools) -> SpecFile:
    return a_payment(tmp_path, tools.url)


@pytest.fixture
def waiting(spec: SpecFile) -> tuple[Run, str]:
    return to_pause(spec)


def test_show_says_what_may_be_changed_and_how(waiting: tuple[Run, str], asha: User) -> None:
    _, key = waiting
    told = command("approvals", "show", key, "--as", "asha")
    assert "May be changed before it is approved: action.body.json.amount (number)" in told.out
    assert f"approvals edit {key} --as asha --edits '{{\"action.body.json.amount\":120}}'" in told.out
    assert "The spec changed" not in told.out


def test_edit_then_show_then_approve_with_more(waiting: tuple[Run, str], tools: FakeTools, asha: User) -> None:
    run, key = waiting
    told = command("approvals", "edit", key, "--as", "asha", "--edits", LESS, "--reason", "too much")
    assert (told.code, told.err) == (0, "")
    assert "Changed by asha" in told.out
    shown = command("approvals", "show", key, "--as", "asha").out
    assert "Changed by asha since it was asked first:" in shown
    assert "action.body.json.amount" in shown
    done = command("approvals", "approve", key, "--as", "asha", "--edits", '{"draft.who": "Ben"}')
    assert done.code == 0, done
    assert newest(run).status == Status.COMPLETED
    assert [request.json()["amount"] for request in tools.requests if "/pay" in request.url] == [100]
    assert [entry.reason for entry in AuditEntry.objects.filter(act="edit")] == ["too much"]


def test_a_bad_edit_is_refused_by_name(waiting: tuple[Run, str], asha: User) -> None:
    _, key = waiting
    for verb in ("edit", "approve"):
        told = command("approvals", verb, key, "--as", "asha", "--edits", '{"draft.who": 5}')
        assert (told.code, told.out) == (2, "")
        assert "edits.draft.who: it is a string and must stay one" in told.err
    assert command("approvals", "edit", key, "--as", "asha", "--edits", "{").code == 64
    assert command("approvals", "edit", key, "--as", "asha").code == 64
    answer = command("approvals", "edit", key, "--as", "asha", "--edits", "{}", "--json").object()
    assert (answer["success"], answer["code"]) == (False, "invalid")
    assert ApprovalRequest.objects.get(key=key).revision == 0


def test_rebind_and_what_show_says_before_and_after(waiting: tuple[Run, str], spec: SpecFile, asha: User) -> None:
    _, key = waiting
    allow(User.objects.create(username="olga"), "approvals.rebind")
    spec.path.write_text(spec.text.replace("team: blue", "team: red"), encoding="utf-8")
    shown = command("approvals", "show", key, "--as", "asha").out
    assert "The spec changed on this step since the run paused, so it cannot be approved now." in shown
    assert "tool pay changed" in shown
    assert "team: red" in shown
    assert f"approvals rebind {key} --as asha --reason WHY" in shown
    refused = command("approvals", "rebind", key, "--as", "asha", "--reason", "new")
    assert (refused.code, "approvals.rebind is needed" in refused.err) == (2, True)
    told = command("approvals", "rebind", key, "--as", "olga", "--reason", "red it is", "--json")
    assert (told.code, told.object()["state"]["status"]) == (0, "awaiting_approval")
    after = command("approvals", "show", key, "--as", "asha").out
    assert "Bound to a changed spec by olga" in after
    assert "The spec changed on" not in after
    again = command("approvals", "rebind", key, "--as", "olga", "--reason", "once more")
    assert (again.code, "did not change" in again.err) == (2, True)
    assert command("approvals", "rebind", key, "--as", "olga").code == 64


def test_a_step_that_is_gone_leaves_rejecting_or_cancelling(
    waiting: tuple[Run, str], spec: SpecFile, asha: User
) -> None:
    _, key = waiting
    spec.path.write_text(spec.text.replace("step: pay,", "step: transfer,"), encoding="utf-8")
    shown = command("approvals", "show", key, "--as", "asha").out
    assert 'step "pay" is gone' in shown
    assert 'step "transfer" is new' in shown
    assert 'there is no step "pay" any more; restore the file, or reject the request or cancel the run.' in shown
    assert "approvals rebind" not in shown
