"""What this version does not perform is refused at every door, with nothing written; the doctor says it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings

from approvals.models import AuditEntry
from statestore.models import StateRecord
from tests.approvals.policies import a_pay, a_sign, text_of, written
from tests.conftest import People
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from tests.workbench import begin
from workflows.errors import NotYet
from workflows.models import Run, RunEvent, SpecVersion
from workflows.not_yet import not_yet
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

TRIGGERS = {
    '{type: schedule, cron: "0 8 * * *", timezone: UTC, input: go}': "the schedule trigger",
    "{type: poll, every: 1m, tool: look, items: rows, key: id}": "the poll trigger",
}
#: Steps of which all is performed.
STORE = (
    "{step: sign, type: once, key: k, ttl: 1d}",
    "{step: sign, type: open, key: k, value: v, ttl: 1d}",
    "{step: sign, type: close, key: k}",
)

#: What the refusals are looked at with.
ONE = '{type: schedule, cron: "0 8 * * *", timezone: UTC, input: go}'
#: Everything that a policy may say, but for what excludes another part.
POLICY = """\
approvers: {groups: [heads], quorum: 2, four_eyes: true, delegate: true}, editable: [look.text], recall: 1m,
      valid_for: 1h, remind_every: 1h, escalate: {after: 1h, groups: [bosses]}, on_expire: execute_tool(tell),
      require_reason: always, on_reject: continue, on_decision: {approved: execute_tool(tell)}, digest: required,
      notify: [{type: email, to: [a@x.test]}, {type: slack, token: "${CHAT}", channel: "#ops"}]"""


def with_trigger(trigger: str) -> str:
    return text_of("{step: sign, type: approval}").replace("  workflow:", f"  trigger: {trigger}\n  workflow:")


def nothing_written() -> bool:
    tables: tuple[Any, ...] = (Run, RunEvent, SpecVersion, StateRecord, AuditEntry)
    return not any(table._default_manager.exists() for table in tables)


def refused(spec: SpecFile, words: str) -> None:
    assert [part for part in not_yet(spec.spec) if words in part], not_yet(spec.spec)
    with pytest.raises(NotYet, match="does not do yet") as told:
        begin(spec)
    assert words in told.value.message
    assert nothing_written()


@pytest.mark.parametrize(("trigger", "words"), TRIGGERS.items())
def test_triggers(tmp_path: Path, trigger: str, words: str) -> None:
    refused(written(tmp_path, with_trigger(trigger)), words)


@pytest.mark.parametrize("step", STORE)
def test_steps_on_the_store_are_performed(tmp_path: Path, step: str) -> None:
    assert not_yet(written(tmp_path, text_of(step)).spec) == ()


def test_a_webhook_and_every_part_of_a_policy_are_performed(tmp_path: Path) -> None:
    for keys in ("", ', secret: "${HOOK}"', ', secret: "${HOOK}", dedupe: "{{ trigger.id }}", dedupe_ttl: 1h'):
        hook = written(tmp_path, with_trigger(f"{{type: webhook{keys}}}"))
        assert not_yet(hook.spec) == ()
    assert not_yet(a_sign(tmp_path, POLICY.replace("editable: [look.text], ", "")).spec) == ()
    assert not_yet(a_pay(tmp_path, POLICY.replace("look.text", "action.url")).spec) == ()
    assert not_yet(a_sign(tmp_path, "mode: record, on_decision: {approved: execute_tool(tell)}").spec) == ()


def test_over_rest_and_by_a_webhook(tmp_path: Path, people: People) -> None:
    written(tmp_path, with_trigger(ONE))
    caller = with_token(people.requester)
    with override_settings(KAMPONG_SPECS=[str(tmp_path)]):
        for answer in (
            caller.post("/runs", {"agent": "clerk", "input": "go"}),
            caller.post("/webhook/clerk", {}),
            caller.post("/webhook", {}),
        ):
            body = answer.json()
            assert (answer.status_code, body["code"], body["success"]) == (501, "not_yet", False)
            assert "the schedule trigger" in body["error"]
    assert nothing_written()


@pytest.mark.parametrize("more", [(), ("--json",), ("--detach",), ("--detach", "--json"), ("--approve-all",)])
def test_at_the_command_line(tmp_path: Path, more: tuple[str, ...]) -> None:
    spec = written(tmp_path, with_trigger(ONE))
    told = command("run_spec", str(spec.path), "--input", "go", *more)
    assert told.code == 2, told
    if "--json" in more:
        answer = told.object()
        assert answer["success"] is False
        assert "the schedule trigger" in answer["error"]
    else:
        assert "does not do yet" in told.err
        assert "the schedule trigger" in told.err
        assert "Traceback" not in told.err
    assert nothing_written()


def test_the_doctor_says_it(tmp_path: Path) -> None:
    spec = written(tmp_path, with_trigger(ONE))
    told = command("doctor", str(spec.path), "--json").object()
    failed = [check for check in told["checks"] if check["status"] == "fail" and "not do yet" in check["message"]]
    assert [check["message"].split(": ")[1].partition(";")[0] for check in failed] == [
        "the schedule trigger as it is written"
    ]
    fine = a_sign(tmp_path, "approvers: {quorum: 2}")
    assert "not do yet" not in command("doctor", str(fine.path), "--json").out


def test_a_spec_that_can_be_loaded_is_valid_all_the_same(tmp_path: Path) -> None:
    spec = written(tmp_path, with_trigger(ONE))
    assert command("check_spec", str(spec.path)).code == 0
