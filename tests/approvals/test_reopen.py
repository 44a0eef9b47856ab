"""Something else than what was approved would run: asked again under a new key, at most three times (design 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.errors import ApprovalNotFound
from approvals.models import ApprovalRequest
from approvals.queue import detail
from approvals.records import store_key
from approvals.services import decide
from statestore.models import StateRecord
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, acting, key_of, to_pause, work, write_spec
from workflows.engine import jsontext
from workflows.errors import NotPossible
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(PAYING_ANSWERS) as tools:
        yield tools


@pytest.fixture
def waiting(tmp_path: Path, tools: FakeTools, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, str]:
    """A run that waits to call an address that the environment can change."""
    monkeypatch.setenv("PAY_TOKEN", "tok")
    monkeypatch.setenv("PAY_HOST", tools.url)
    text = PAYING.replace('"{url}/pay"', '"${{PAY_HOST}}/pay"')
    return to_pause(write_spec(tmp_path, text, url=tools.url))


def approve_and_change(run: Run, people: People, monkeypatch: pytest.MonkeyPatch, host: str) -> Run:
    """Approve what waits; before a worker comes, the address is another."""
    decide(key_of(newest(run)), approved=True, actor=acting(people.approver))
    monkeypatch.setenv("PAY_HOST", host)
    work()
    return newest(run)


def test_a_request_that_is_asked_again_has_a_new_key_and_shows_both_versions(
    waiting: tuple[Run, str], tools: FakeTools, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, first = waiting
    before = detail(first, acting(people.approver))
    again = approve_and_change(run, people, monkeypatch, f"{tools.url}/other")
    key = key_of(again)
    shown = detail(key, acting(people.approver))
    earlier = shown["reopenedFrom"]
    assert key != first
    assert shown["digest"] != before["digest"]
    assert (earlier["key"], earlier["digest"], earlier["action"]) == (first, before["digest"], before["action"])
    assert 'tool "pay" is not the one that was shown' in earlier["what_differs"]
    with pytest.raises(ApprovalNotFound) as told:
        decide(first, approved=True, actor=acting(people.approver))
    assert told.value.extra["decision"]["outcome"] == "approved"
    assert [request.method for request in tools.requests] == ["GET"]


def test_after_three_times_the_run_fails_and_names_what_differs(
    waiting: tuple[Run, str], tools: FakeTools, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = waiting
    for number in range(3):
        assert approve_and_change(run, people, monkeypatch, f"{tools.url}/{number}").status == Status.AWAITING
    last = approve_and_change(run, people, monkeypatch, f"{tools.url}/3")
    assert (last.status, last.step) == (Status.FAILED, "pay")
    assert 'the call of tool "pay" is not the one that was shown' in last.error
    assert ApprovalRequest.objects.count() == 4
    assert [request.method for request in tools.requests] == ["GET"]


def test_the_second_version_can_be_rejected(
    waiting: tuple[Run, str], tools: FakeTools, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = waiting
    again = approve_and_change(run, people, monkeypatch, f"{tools.url}/other")
    decide(key_of(again), approved=False, reason="not there", actor=acting(people.approver))
    state = run_state(run)
    assert (state["status"], state["error"]) == ("rejected", "not there")
    assert [request.method for request in tools.requests] == ["GET"]


def test_a_record_that_a_later_version_wrote_is_refused_and_kept(tmp_path: Path, people: People) -> None:
    _, key = to_pause(write_spec(tmp_path, ASKING))
    stored = StateRecord.objects.get(key=store_key(key))
    record = jsontext.loads(stored.value) | {"format": 2}
    StateRecord.objects.filter(pk=stored.pk).update(value=jsontext.dumps(record))
    for approved in (True, False):
        with pytest.raises(NotPossible, match="written by a later version"):
            decide(key, approved=approved, actor=acting(people.approver))
    with pytest.raises(NotPossible, match="written by a later version"):
        detail(key, acting(people.approver))
    assert StateRecord.objects.filter(pk=stored.pk).exists()
