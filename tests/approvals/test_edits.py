"""What is edited is what is approved and what runs; a bad edit is refused field by field and costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import audit
from approvals.changes import offered, preview
from approvals.errors import ActionChanged
from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail
from approvals.records import peek
from approvals.services import decide
from tests.approvals.editables import a_payment
from tests.fakes_tools import FakeTools
from tests.workbench import acting, key_of, to_pause, work
from workflows.engine import jsontext
from workflows.errors import Invalid, NotPossible, SpecChanged
from workflows.models import Run, Status
from workflows.registry import read_spec
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting(tmp_path: Path, tools: FakeTools) -> tuple[Run, str]:
    return to_pause(a_payment(tmp_path, tools.url))


def record_of(key: str) -> dict[str, Any]:
    found = peek(ApprovalRequest.objects.get(key=key))
    assert found is not None
    return found


def sent_to_pay(tools: FakeTools) -> list[Any]:
    return [request.json() for request in tools.requests if "/pay" in request.url]


def test_what_may_be_changed_is_offered_with_its_present_values(waiting: tuple[Run, str], tools: FakeTools) -> None:
    _, key = waiting
    found = offered(ApprovalRequest.objects.get(key=key), record_of(key))
    assert [(one.path, one.value, one.kind) for one in found] == [
        ("action.body.json.amount", 120, "number"),
        ("action.body.json.to", "for Asha", "string"),
        ("action.query.team", "blue", "string"),
        ("draft.who", "Asha", "string"),
        ("draft.lines[1]", "b", "string"),
        ("action.url", "${PAY_HOST}/pay", "string"),
        ("action.headers.Authorization", "Bearer ${PAY_TOKEN}", "string"),
    ]


def test_an_edited_action_is_approved_in_one_act_and_is_what_runs(
    waiting: tuple[Run, str], tools: FakeTools, asha: User
) -> None:
    run, key = waiting
    shown = record_of(key)["digest"]
    edits = {"action.body.json.amount": 100, "action.query.team": "red"}
    edited = preview(ApprovalRequest.objects.get(key=key), record_of(key), edits)
    assert edited.digest != shown
    decide(key, approved=True, actor=acting(asha), digest=shown, edits=edits)
    work()
    assert newest(run).status == Status.COMPLETED
    assert sent_to_pay(tools) == [{"amount": 100, "to": "for Asha", "rows": [1, "two"]}]
    assert [request.url for request in tools.requests if "/pay" in request.url] == [f"{tools.url}/pay?team=red"]
    entry = AuditEntry.objects.get(key=key, act="decide")
    assert (entry.digest, entry.digest_sent) == (edited.digest, True)
    assert jsontext.loads(entry.details)["edits"] == {
        "action.body.json.amount": {"before": 120, "after": 100},
        "action.query.team": {"before": "blue", "after": "red"},
    }
    assert ApprovalRequest.objects.get(key=key).digest == edited.digest
    audit.seal()
    assert audit.verify().first_bad is None


def test_an_edited_earlier_answer_is_in_the_action_and_in_later_steps(
    waiting: tuple[Run, str], tools: FakeTools, asha: User
) -> None:
    run, key = waiting
    decide(key, approved=True, actor=acting(asha), edits={"draft.who": "Ben ${PAY_TOKEN} {{ input }}"})
    work()
    last = newest(run)
    assert last.status == Status.COMPLETED, last.error
    assert sent_to_pay(tools)[0]["to"] == "for Ben ${PAY_TOKEN} {{ input }}"
    assert tools.requests[-1].json() == {"of": "Ben ${PAY_TOKEN} {{ input }}"}
    assert "tok-canary" not in "".join(str(request.body) for request in tools.requests)


def test_a_change_that_the_action_does_not_show_counts_as_well(waiting: tuple[Run, str], asha: User) -> None:
    """Nobody approves by an old page what later steps will read otherwise."""
    _, key = waiting
    request, record = ApprovalRequest.objects.get(key=key), record_of(key)
    edited = preview(request, record, {"draft.lines[1]": "c"})
    assert edited.action == record["action"]
    assert edited.digest != record["digest"]
    assert preview(request, record, {"draft.lines[1]": "b"}).digest == record["digest"]


def test_the_answer_before_the_edit_is_what_the_digest_sent_is_compared_with(
    waiting: tuple[Run, str], asha: User
) -> None:
    _, key = waiting
    edits = {"action.body.json.amount": 100}
    edited = preview(ApprovalRequest.objects.get(key=key), record_of(key), edits)
    with pytest.raises(ActionChanged):
        decide(key, approved=True, actor=acting(asha), digest=edited.digest, edits=edits)
    assert ApprovalRequest.objects.get(key=key).status == "open"


BAD: list[tuple[Any, str, str]] = [
    ([], "edits", "an object that maps paths"),
    ("x", "edits", "an object"),
    ({"action.body.json.rows": [2]}, "edits.action.body.json.rows", "cannot be changed; what can: action.body"),
    ({"receipt": 1}, "edits.receipt", "cannot be changed"),
    ({"": 1}, "edits.", "cannot be changed"),
    ({"a..b": 1}, "edits.a..b", "cannot be changed"),
    ({"\ud800": 1}, "edits.\\ud800", "cannot be changed"),
    ({"action.body.json.amount": "120"}, "edits.action.body.json.amount", "a number and must stay one"),
    ({"action.body.json.amount": True}, "edits.action.body.json.amount", "not become a boolean"),
    ({"action.body.json.amount": None}, "edits.action.body.json.amount", "not become null"),
    ({"action.body.json.to": {"x": 1}}, "edits.action.body.json.to", "not become a mapping"),
    ({"action.body.json.to": "a\x00b"}, "edits.action.body.json.to", "NUL"),
    ({"action.body.json.to": "a\ud800b"}, "edits.action.body.json.to", "surrogate"),
    ({"action.body.json.to": "x" * 1_100_000}, "edits.action.body.json.to", "at most 1048576"),
    ({"draft.ghost": "x"}, "edits.draft.ghost", "there is nothing at this place"),
    ({"draft.who": "x", 'draft["who"]': "y"}, 'edits.draft["who"]', "given twice"),
    ({"action.url": "${PAY_HOST}/other"}, "edits.action.url", "filled in from the environment"),
]


@pytest.mark.parametrize(("edits", "path", "words"), BAD)
def test_a_bad_edit_is_refused_by_name_and_consumes_nothing(
    waiting: tuple[Run, str], asha: User, edits: Any, path: str, words: str
) -> None:
    run, key = waiting
    with pytest.raises(Invalid) as refused:
        decide(key, approved=True, actor=acting(asha), edits=edits)
    (error,) = refused.value.extra["errors"]
    assert error["path"] == path
    assert words in error["message"]
    assert newest(run).status == Status.AWAITING
    assert ApprovalRequest.objects.get(key=key).status == "open"
    assert not AuditEntry.objects.exists()
    assert "tok-canary" not in str(refused.value.extra)


def test_all_that_is_wrong_is_said_at_once(waiting: tuple[Run, str], asha: User) -> None:
    _, key = waiting
    edits = {"action.body.json.amount": "x", "nothing": 1, "draft.who": 3, "action.body.json.to": "fine"}
    with pytest.raises(Invalid) as refused:
        decide(key, approved=True, actor=acting(asha), edits=edits)
    paths = [error["path"] for error in refused.value.extra["errors"]]
    assert paths == ["edits.action.body.json.amount", "edits.nothing", "edits.draft.who"]


def test_a_rejection_takes_no_edits(waiting: tuple[Run, str], asha: User) -> None:
    _, key = waiting
    with pytest.raises(Invalid, match="a rejection changes nothing"):
        decide(key, approved=False, actor=acting(asha), edits={"action.body.json.amount": 1})
    assert ApprovalRequest.objects.get(key=key).status == "open"


def test_a_request_that_lets_nothing_be_changed_takes_none(tmp_path: Path, tools: FakeTools, asha: User) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, editable=""))
    with pytest.raises(Invalid, match="this request takes none"):
        decide(key, approved=True, actor=acting(asha), edits={})
    assert "editable" not in detail(key, acting(asha))


def test_edits_that_change_nothing_are_a_plain_approval(waiting: tuple[Run, str], tools: FakeTools, asha: User) -> None:
    run, key = waiting
    shown = record_of(key)["digest"]
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 120.0, "draft.who": "Asha"})
    entry = AuditEntry.objects.get(key=key, act="decide")
    assert (entry.digest, entry.details) == (shown, "")
    work()
    assert newest(run).status == Status.COMPLETED


def test_a_changed_spec_is_refused_before_the_edits_are_looked_at(
    waiting: tuple[Run, str], tmp_path: Path, asha: User
) -> None:
    _, key = waiting
    path = tmp_path / "clerk.yaml"
    path.write_text(path.read_text().replace("two]", "three]"), encoding="utf-8")
    with pytest.raises(SpecChanged):
        decide(key, approved=True, actor=acting(asha), edits={"ghost": 1})


def test_the_environment_of_the_process_that_decides_does_not_matter_to_the_url(
    waiting: tuple[Run, str], tools: FakeTools, asha: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web server need not have what only workers need."""
    run, key = waiting
    monkeypatch.delenv("PAY_HOST")
    monkeypatch.delenv("PAY_TOKEN")
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 7})
    monkeypatch.setenv("PAY_HOST", tools.url)
    monkeypatch.setenv("PAY_TOKEN", "tok")
    work()
    assert newest(run).status == Status.COMPLETED
    assert sent_to_pay(tools)[0]["amount"] == 7


def test_a_host_that_was_switched_meanwhile_asks_again_with_the_edit_in_place(
    waiting: tuple[Run, str], tools: FakeTools, asha: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, key = waiting
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 7, "draft.lines[1]": "c"})
    tools.script["POST /v2/pay"] = {"json": {"id": "p-2"}}
    monkeypatch.setenv("PAY_HOST", f"{tools.url}/v2")
    work()
    again = newest(run)
    assert (again.status, sent_to_pay(tools)) == (Status.AWAITING, [])
    second = record_of(key_of(again))
    assert second["action"]["body"]["json"]["amount"] == 7
    assert second["outputs"]["draft"]["lines"] == ["a", "c"]
    decide(key_of(again), approved=True, actor=acting(asha), edits={"action.body.json.to": "Chitra"})
    work()
    assert newest(run).status == Status.COMPLETED
    assert sent_to_pay(tools) == [{"amount": 7, "to": "Chitra", "rows": [1, "two"]}]


def test_a_process_that_renders_otherwise_changes_nothing(
    tmp_path: Path, tools: FakeTools, asha: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "blue")
    spec = a_payment(tmp_path, tools.url)
    text = spec.text.replace("agent:", 'vars: {team: {type: string, default: "${TEAM}"}}\nagent:', 1)
    spec.path.write_text(text.replace("team: blue", 'team: "{{ vars.team }}"'), encoding="utf-8")
    _, key = to_pause(read_spec(spec.path))
    monkeypatch.setenv("TEAM", "red")
    with pytest.raises(NotPossible, match="comes out otherwise in this process"):
        decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 7})
    monkeypatch.delenv("TEAM")
    with pytest.raises(NotPossible, match="TEAM is not set"):
        decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 7})
    monkeypatch.setenv("TEAM", "blue")
    decide(key, approved=True, actor=acting(asha), edits={"action.body.json.amount": 7})
    assert not AuditEntry.objects.exclude(act="decide").exists()


def test_of_two_edits_one_inside_the_other_one_has_to_be_chosen(tmp_path: Path, tools: FakeTools, asha: User) -> None:
    _, key = to_pause(a_payment(tmp_path, tools.url, editable="editable: [draft.lines, 'draft.lines[1]']"))
    both = {"draft.lines": ["x", "y"], "draft.lines[1]": "z"}
    with pytest.raises(Invalid) as refused:
        decide(key, approved=True, actor=acting(asha), edits=both)
    (error,) = refused.value.extra["errors"]
    assert error["path"] == "edits.draft.lines[1]"
    assert "lies inside draft.lines" in error["message"]
    decide(key, approved=True, actor=acting(asha), edits={**both, "draft.lines[1]": "b"})
