"""`run_spec --detach` under a policy: whoever starts is known where four eyes need it, and the key is the gate's."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test.utils import override_settings

from approvals.models import ApprovalRequest
from tests.approvals.policies import a_pay, a_sign, text_of, written
from tests.conftest import People
from tests.surfaces.cli.running import command
from tests.workbench import begin
from workflows.actors import Actor
from workflows.models import Run
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)

FOUR = "approvers: {four_eyes: true}"
DETACH = ("--input", "x", "--detach")


def everywhere(folder: Path) -> list[SpecFile]:
    """Four eyes at each place where a policy may stand."""
    found = []
    for number, make in enumerate((a_sign, a_pay)):
        (folder / str(number)).mkdir()
        found.append(make(folder / str(number), FOUR))
    branch = f'if: "true", then: request_human_approval, else: execute_tool(look), {FOUR}'
    for name, text in (
        ("agent", text_of("{step: sign, type: approval}").replace("  tools:", f"  approvals: {{{FOUR}}}\n  tools:")),
        ("branch", text_of(f"{{step: sign, type: condition, {branch}}}")),
    ):
        (folder / name).mkdir()
        found.append(written(folder / name, text))
    return found


def test_nobody_starts_what_four_eyes_guard_without_a_name(tmp_path: Path, people: People) -> None:
    for spec in everywhere(tmp_path):
        told = command("run_spec", str(spec.path), *DETACH)
        assert told.code == 2, told
        assert "four eyes" in told.err
        assert "set KAMPONG_CLI_USER" in told.err
        answer = command("run_spec", str(spec.path), *DETACH, "--json").object()
        assert (answer["success"], answer["code"]) == (False, "not_allowed")
        assert Run.objects.count() == 0
        with override_settings(KAMPONG_CLI_USER="requester"):
            assert command("run_spec", str(spec.path), *DETACH).code == 3
        assert Run.objects.get().started_by_user == people.requester
        ApprovalRequest.objects.all().delete()
        Run.objects.all().delete()


def test_what_has_no_starter_by_contract_starts(tmp_path: Path) -> None:
    begin(a_sign(tmp_path, FOUR), actor=Actor(label="webhook", surface="webhook"))
    assert Run.objects.count() == 1


def test_without_four_eyes_nobody_has_to_be_named(tmp_path: Path) -> None:
    assert command("run_spec", str(a_sign(tmp_path, "approvers: {quorum: 2}").path), *DETACH).code == 3


def test_the_key_is_that_of_the_gate_and_not_of_a_record_before_it(tmp_path: Path) -> None:
    record = '{step: note, type: approval, message: "Seen?", mode: record}'
    text = text_of(f'{record}\n    - {{step: gate, type: approval, message: "Go?"}}')
    told = command("run_spec", str(written(tmp_path, text).path), *DETACH, "--json")
    assert told.code == 3, told
    assert told.object()["key"] == str(ApprovalRequest.objects.get(step="gate").key)
    assert ApprovalRequest.objects.count() == 2
