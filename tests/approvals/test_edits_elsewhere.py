"""No edit takes what is filled in from the environment to a host that the spec does not name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.editing import edit_request
from approvals.models import ApprovalRequest, AuditEntry
from approvals.services import decide
from tests.approvals.editables import a_payment
from tests.approvals.policies import text_of, written
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause, work
from workflows.errors import Invalid
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

SEND = "{step: sign, type: tool, tool: pay}"
LOOK_AND_SEND = f"{{step: look, type: tool, tool: look}}\n    - {SEND}"
AUTH = 'headers: {Authorization: "Bearer ${PAY_TOKEN}"}'


@pytest.fixture
def other() -> Iterator[FakeTools]:
    """A host of somebody else."""
    with FakeTools({"POST /pay": {"json": {}}, "POST /": {"json": {}}}) as other:
        yield other


def refused(edits: Any, key: str, user: User) -> list[str]:
    """The paths that are told, whichever door was tried; nothing is consumed and nothing is told of the value."""
    paths: list[str] = []
    for act in (
        lambda: decide(key, approved=True, actor=acting(user), edits=edits),
        lambda: edit_request(key, edits=edits, actor=acting(user)),
    ):
        with pytest.raises(Invalid, match="to another host") as problem:
            act()
        assert "${PAY_TOKEN}" in problem.value.message
        assert "tok-canary" not in str(problem.value.extra)
        paths = [error["path"] for error in problem.value.extra["errors"]]
    assert ApprovalRequest.objects.get(key=key).status == "open"
    assert not AuditEntry.objects.exists()
    return paths


def to(url: str, folder: Path, *, sign: str = SEND, more: str = AUTH, editable: str = "action.url") -> tuple[Run, str]:
    """A call of this address waits."""
    pay = f"approval: {{editable: [{editable}]}}, {more}"
    text = text_of(sign, url="URL", pay=pay).replace('"URL/pay"', f'"{url}"')
    return to_pause(written(folder, text))


def test_not_where_the_host_is_filled_in(spec: SpecFile, asha: User, other: FakeTools) -> None:
    _, key = to_pause(spec)
    edits = {"action.url": f"{other.url}/pay", "action.query.team": "red"}
    assert refused(edits, key, asha) == ["edits.action.url"]


@pytest.mark.parametrize(
    "url",
    [
        "https://pay.example.net/pay",
        "http://pay.example.com/pay",
        "https://pay.example.com:444/pay",
        "https://pay.example.com@elsewhere.example/pay",
        "https://pay.example.com\\@elsewhere.example/pay",
        "//elsewhere.example/pay",
        "elsewhere.example",
        "",
    ],
)
def test_nor_where_it_is_written(tmp_path: Path, tools: FakeTools, asha: User, url: str) -> None:
    _, key = to("https://pay.example.com/pay", tmp_path)
    assert refused({"action.url": url}, key, asha) == ["edits.action.url"]


def test_nor_by_an_earlier_answer_of_which_the_host_is_made(tmp_path: Path, asha: User, other: FakeTools) -> None:
    with FakeTools({"GET /look": {"json": {"host": "http://pay.example.com"}}}) as tools:
        text = text_of(LOOK_AND_SEND, url=tools.url, pay=f'approval: {{editable: ["look.host"]}}, {AUTH}')
        spec = written(tmp_path, text.replace(f'"{tools.url}/pay"', '"{{ look.host }}/pay"'))
        _, key = to_pause(spec)
        assert refused({"look.host": other.url}, key, asha) == ["edits.look.host"]


def test_nor_in_two_steps(tmp_path: Path, tools: FakeTools, asha: User, other: FakeTools) -> None:
    """Once nothing is filled in any more it may go anywhere; what is filled in does not come back then."""
    run, key = to_pause(a_payment(tmp_path, tools.url))
    free = {"action.url": f"{other.url}/pay", "action.headers.Authorization": "none"}
    edit_request(key, edits=free, actor=acting(asha))
    with pytest.raises(Invalid, match="to another host") as problem:
        decide(key, approved=True, actor=acting(asha), edits={"action.headers.Authorization": "Bearer ${PAY_TOKEN}"})
    assert [error["path"] for error in problem.value.extra["errors"]] == ["edits.action.headers.Authorization"]
    decide(key, approved=True, actor=acting(asha))
    work()
    assert newest(run).status == Status.COMPLETED
    (request,) = other.requests
    assert dict(request.headers)["Authorization"] == "none"


def test_the_path_may_change_and_so_may_the_host_of_a_call_that_carries_nothing(
    tmp_path: Path, tools: FakeTools, asha: User, other: FakeTools
) -> None:
    run, key = to(f"{other.url}/never", tmp_path)
    decide(key, approved=True, actor=acting(asha), edits={"action.url": f"{other.url}/pay"})
    bare, free = to("http://127.0.0.1:9/pay", tmp_path, more="headers: {X-Team: blue}")
    decide(free, approved=True, actor=acting(asha), edits={"action.url": f"{other.url}/pay"})
    work()
    assert [request.url for request in other.requests] == [f"{other.url}/pay"] * 2
    assert {newest(run).step, newest(bare).step} == {"last"}
