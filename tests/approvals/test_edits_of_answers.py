"""Answers of models that people change: at the guardrail, before an approval step, within their schema (spec 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.changes import offered, preview
from approvals.editing import edit_request
from approvals.models import ApprovalRequest, AuditEntry
from approvals.queue import detail
from approvals.rebinding import rebind
from approvals.records import peek
from approvals.services import decide
from tests.approvals.policies import ANSWERS, a_pay, a_sign
from tests.conftest import allow
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.workbench import HEAD, acting, begin, key_of, to_pause, work, write_spec
from workflows.errors import Invalid, NotPossible
from workflows.models import Run, Status
from workflows.reading import run_state
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)

V12 = HEAD.replace('"1.1"', '"1.2"').replace("name: test-model", 'name: test-model, base_url: "{models}"')
#: An unsure answer waits at the guardrail; `after` is asked with it.
UNSURE = V12 + (
    """\
  approvals: {{editable: [judge, after]}}
  guardrails: {{confidence_threshold: 0.8, fallback_action: escalate_to_human}}
  workflow:
    - {{step: judge, type: action, action: Judge, confidence_gate: true}}
    - {{step: after, type: action, action: "Go on", query: "It says {{{{ judge }}}}"}}
"""
)
#: A drafted mail that is read before it is asked about.
DRAFTED = V12 + (
    """\
  workflow:
    - step: draft
      type: action
      action: Draft
      output_schema:
        type: object
        required: [tone, text]
        properties:
          tone: {{type: string, enum: [warm, cool]}}
          text: {{type: string, pattern: "^Dear"}}
    - step: sign
      type: approval
      message: "Send: {{{{ draft.text }}}}"
      editable: [draft.text, draft.tone]
    - {{step: after, type: action, action: "Go on", query: "It says {{{{ draft.text }}}}"}}
"""
)


@pytest.fixture
def models() -> Iterator[FakeModels]:
    answers: dict[str, Any] = {
        "judge": {"result": "pay twice", "confidence": 0.2},
        "draft": {"object": {"tone": "warm", "text": "Dear Ben"}},
        "after": "done",
    }
    with FakeModels(answers) as server:
        yield server


def the_request(run: Run) -> ApprovalRequest:
    return ApprovalRequest.objects.get(key=key_of(run))


def beside(spec: SpecFile) -> Run:
    """A run that did not wait for the decision that it asked for."""
    run = begin(spec)
    work()
    run.refresh_from_db()
    assert run.status == Status.COMPLETED, run.error
    return run


def last_question(models: FakeModels) -> str:
    return str(models.requests[-1].body)


def test_an_answer_is_put_right_at_the_guardrail_and_used_from_there(
    tmp_path: Path, models: FakeModels, asha: User
) -> None:
    run, key = to_pause(write_spec(tmp_path, UNSURE, models=models.url))
    request = the_request(run)
    record = peek(request)
    assert record is not None
    assert [(one.path, one.value) for one in offered(request, record)] == [("judge", "pay twice")]
    edited = preview(request, record, {"judge": "pay once"})
    assert (edited.action, edited.reason) == ("pay once", record["reason"])
    decide(key, approved=True, actor=acting(asha), edits={"judge": "pay once"}, digest=record["digest"])
    work()
    last = newest(run)
    assert last.status == Status.COMPLETED, last.error
    assert run_state(last)["finalOutput"]["judge"] == "pay once"
    assert "It says pay once" in last_question(models)
    assert AuditEntry.objects.get(act="decide").digest == edited.digest


def test_the_message_of_an_approval_step_is_made_again_with_the_edit(
    tmp_path: Path, models: FakeModels, asha: User
) -> None:
    run, key = to_pause(write_spec(tmp_path, DRAFTED, models=models.url))
    edit_request(key, edits={"draft.text": "Dear ${HOME}"}, actor=acting(asha))
    told = detail(key, acting(asha))
    assert (told["message"], told["reason"]) == ("Send: Dear ${HOME}", "Send: Dear ${HOME}")
    decide(key, approved=True, actor=acting(asha), digest=told["digest"])
    work()
    assert newest(run).status == Status.COMPLETED
    assert "It says Dear ${HOME}" in last_question(models)


@pytest.mark.parametrize(
    ("edits", "paths"),
    [
        ({"draft.tone": "hot"}, ["edits.draft.tone"]),
        ({"draft.text": "Hi"}, ["edits.draft.text"]),
        ({"draft.text": "Hi", "draft.tone": "hot"}, ["edits.draft.text", "edits.draft.tone"]),
        ({"draft.text": "Hi", "draft.tone": "cool"}, ["edits.draft.text"]),
    ],
)
def test_an_edited_answer_still_fits_the_schema_of_its_step(
    tmp_path: Path, models: FakeModels, asha: User, edits: dict[str, Any], paths: list[str]
) -> None:
    run, key = to_pause(write_spec(tmp_path, DRAFTED, models=models.url))
    with pytest.raises(Invalid, match="does not fit its output_schema") as refused:
        decide(key, approved=True, actor=acting(asha), edits=edits)
    assert [error["path"] for error in refused.value.extra["errors"]] == paths
    assert newest(run).status == Status.AWAITING


def test_a_guardrail_is_bound_to_a_changed_spec(tmp_path: Path, models: FakeModels, asha: User) -> None:
    spec = write_spec(tmp_path, UNSURE, models=models.url)
    run, key = to_pause(spec)
    before = the_request(run)
    inserted = spec.text.replace("workflow:\n", 'workflow:\n    - {step: new, type: action, action: "New"}\n')
    spec.path.write_text(inserted, encoding="utf-8")
    bound = rebind(key, actor=acting(allow(asha, "approvals.rebind")), reason="new version")
    assert (bound.step_index, bound.phase, bound.digest) == (1, "after", before.digest)
    assert bound.reason == before.reason
    decide(key, approved=True, actor=acting(asha), digest=bound.digest)
    work()
    assert newest(run).status == Status.COMPLETED
    assert (models.count("judge"), models.count("new"), models.count("after")) == (1, 0, 1)


def test_a_step_without_its_guardrail_cannot_be_bound(tmp_path: Path, models: FakeModels, asha: User) -> None:
    spec = write_spec(tmp_path, UNSURE, models=models.url)
    _, key = to_pause(spec)
    spec.path.write_text(spec.text.replace(", confidence_gate: true", ""), encoding="utf-8")
    with pytest.raises(NotPossible, match="does not ask a person now"):
        rebind(key, actor=acting(allow(asha, "approvals.rebind")), reason="new version")
    assert models.count("after") == 0


# Rules and checks, and requests that nobody waits for -----------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [{"json": {"decision": "ask"}}, {"status": 500, "text": "no"}], ids=["asks", "failed"]
)
def test_rules_and_checks_are_not_asked_again_by_an_edit(tmp_path: Path, asha: User, answer: dict[str, Any]) -> None:
    with FakeTools(ANSWERS | {"GET /look": answer}) as tools:
        auto = "auto: {approve_if: 'action.url = \"x\"', check: execute_tool(look)}"
        run, key = to_pause(a_pay(tmp_path, f"editable: [action.url], {auto}", url=tools.url))
        asked = len(tools.requests)
        tools.script["POST /pay2"] = {"json": {}}
        decide(key, approved=True, actor=acting(asha), edits={"action.url": f"{tools.url}/pay2"})
        assert len(tools.requests) == asked
        work()
        assert newest(run).status == Status.COMPLETED
        assert [request.url for request in tools.requests[asked:]] == [f"{tools.url}/pay2", f"{tools.url}/last"]


def test_nothing_is_changed_of_what_no_run_waits_for(tmp_path: Path, models: FakeModels, asha: User) -> None:
    text = DRAFTED.replace("type: approval", "type: approval\n      mode: record")
    run = beside(write_spec(tmp_path, text, models=models.url))
    key = str(ApprovalRequest.objects.get().key)
    assert detail(key, acting(asha))["editable"] == []
    with pytest.raises(Invalid, match="went on without this decision"):
        decide(key, approved=True, actor=acting(asha), edits={"draft.tone": "cool"})
    with pytest.raises(Invalid, match="went on without this decision"):
        edit_request(key, edits={"draft.tone": "cool"}, actor=acting(asha))
    decide(key, approved=True, actor=acting(asha))
    assert newest(run).status == Status.COMPLETED


def test_what_is_only_recorded_cannot_be_bound(tmp_path: Path, asha: User) -> None:
    with FakeTools(ANSWERS) as tools:
        spec = a_sign(tmp_path, "mode: record", url=tools.url)
        beside(spec)
        key = str(ApprovalRequest.objects.get().key)
        spec.path.write_text(spec.text.replace("Really?", "Surely?"), encoding="utf-8")
        assert detail(key, acting(asha))["drift"]["canRebind"] is False
        with pytest.raises(NotPossible, match="went on long ago"):
            rebind(key, actor=acting(allow(asha, "approvals.rebind")), reason="new version")
