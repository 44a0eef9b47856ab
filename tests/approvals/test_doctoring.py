"""The doctor finds before a run what no run could satisfy, and whom nobody would tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection

from approvals.doctoring import gates_of
from tests.approvals.policies import a_sign, member, text_of, written
from tests.conftest import ROOT, allow
from tests.surfaces.cli.running import command
from workflows.doctor.checks import examine
from workflows.doctor.findings import Patient
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db(transaction=True)


def patient(file: SpecFile, **environ: str) -> Patient:
    return Patient(spec=file.spec, fixtures=Path("/nowhere"), environ=environ)


def told(file: SpecFile, **environ: str) -> list[tuple[str, str]]:
    """What is said of approvals and notices, what passed aside."""
    checks = examine(patient(file, **environ))
    return [
        (check.status, check.message)
        for check in checks
        if check.area in ("approvals", "notices") and check.status != "pass"
    ]


def test_enough_people_pass_and_a_policy_without_people_asks_for_none(tmp_path: Path) -> None:
    member("asha", "finance")
    member("bo", "finance")
    file = a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2}")
    passed = [check.message for check in examine(patient(file)) if check.area == "approvals"]
    assert passed == ['step "sign": members of finance: enough of them can decide today']
    assert told(a_sign(tmp_path, "require_reason: always")) == []


def test_a_quorum_that_cannot_be_met_fails(tmp_path: Path) -> None:
    member("asha", "finance")
    member("gone", "finance")
    User.objects.filter(username="gone").update(is_active=False)
    member("boss", "heads")
    two = "approvers: {groups: [finance], quorum: 2}"
    assert told(a_sign(tmp_path, two)) == [
        ("fail", 'step "sign": 1 of members of finance can approve today, and 2 must'),
    ]
    assert told(a_sign(tmp_path, f"{two}, escalate: {{after: 1h, groups: [heads]}}")) == [
        ("warn", 'step "sign": 1 of members of finance can approve today, and 2 must before it is escalated'),
    ]


def test_names_that_nobody_bears_fail_and_people_who_cannot_decide_are_named(tmp_path: Path) -> None:
    member("asha", "finance")
    User.objects.create(username="visitor")
    Group.objects.create(name="empty")
    approvers = "approvers: {users: [asha, visitor, ghost], groups: [empty, phantoms]}"
    assert told(a_sign(tmp_path, f"{approvers}, escalate: {{after: 1h, groups: [spooks, empty]}}")) == [
        ("fail", 'step "sign": there is no user "ghost"'),
        ("fail", 'step "sign": there is no group "phantoms"'),
        ("fail", 'step "sign": there is no group "spooks"'),
        (
            "warn",
            'step "sign": the user "visitor" does not hold approvals.decide, or is deactivated: they cannot decide',
        ),
        ("warn", 'step "sign": nobody in the group "empty" holds approvals.decide: nobody of it can decide'),
        (
            "warn",
            'step "sign": nobody in the group "empty" holds approvals.decide: nobody of it can decide '
            "when it is escalated",
        ),
    ]


def test_four_eyes_take_the_starter_away(tmp_path: Path) -> None:
    asha, bo = member("asha", "finance"), member("bo", "finance")
    file = a_sign(tmp_path, "approvers: {groups: [finance], quorum: 2, four_eyes: true}")
    assert told(file) == []
    allow(asha, "workflows.start_run")
    rest = "of members of finance then 1 can approve, and 2 must"
    assert told(file) == [("fail", f'step "sign": whoever may start a run may not approve it (four eyes), and {rest}')]
    allow(User.objects.create(username="clerk"), "workflows.start_run")
    some = "1 of those who may start a run"
    assert told(file) == [("warn", f'step "sign": {some} may not approve it (four eyes), and {rest}')]
    member("chitra", "finance")
    assert told(file) == []
    assert bo.is_active


def test_who_starts_a_run_of_a_trigger_is_said(tmp_path: Path) -> None:
    member("asha")
    text = text_of('{step: sign, type: approval, message: "Really?", approvers: {four_eyes: true}}')
    cases = {
        '{type: schedule, cron: "0 8 * * *"}': "a schedule has no starter, so its runs may be approved by everybody",
        '{type: webhook, secret: "${S}"}': "a webhook has no starter, so its runs may be approved by everybody",
        "{type: webhook}": "the starter is the user whose token or session calls the webhook",
    }
    for trigger, words in cases.items():
        file = written(tmp_path, text.replace("  tools:", f"  trigger: {trigger}\n  tools:", 1))
        assert ("warn", f'step "sign": four eyes: {words}') in told(file)


def test_handing_on_to_nobody(tmp_path: Path) -> None:
    member("asha", "finance")
    file = a_sign(tmp_path, "approvers: {groups: [finance], delegate: true}")
    words = "it can be handed to nobody: all who hold approvals.decide may decide it already"
    assert told(file) == [("warn", f'step "sign": {words}')]
    member("dev")
    assert told(file) == []


def test_channels_that_reach_nobody(tmp_path: Path) -> None:
    asha = member("asha")
    asha.email = "Asha@house.test"
    asha.save()
    slack = '{type: slack, token: "${DESK_TOKEN}", channel: "#desk"}'
    file = a_sign(tmp_path, f"notify: [{slack}, {{type: email, to: [asha@house.test, all@house.test]}}]")
    address = (
        'step "sign": all@house.test is the address of no user: its mail has no link to decide with, and leads to '
        "the sign-in page"
    )
    assert told(file) == [
        (
            "warn",
            'step "sign": the environment variable DESK_TOKEN of its Slack channel is not set: nobody is told there',
        ),
        ("warn", 'step "sign": no mail leaves: the environment variable EMAIL_URL is not set'),
        ("warn", "buttons in Slack decide nothing: the environment variable SLACK_SIGNING_SECRET is not set"),
        ("warn", address),
    ]
    assert told(file, DESK_TOKEN="x", EMAIL_URL="x", SLACK_SIGNING_SECRET="x") == [("warn", address)]


def test_every_place_where_a_gate_opens_is_looked_at_once(tmp_path: Path) -> None:
    same = "approvers: {users: [asha]}"
    sign = f'{{step: sign, type: approval, message: "Really?", {same}}}'
    file = written(tmp_path, text_of(sign, pay=f"approval: {{{same}}}"))
    assert [where for _, where in gates_of(patient(file))] == ['step "sign", tool "pay"']
    checks = [message for status, message in told(file) if status == "fail"]
    assert checks[0] == 'step "sign", tool "pay": there is no user "asha"'
    ask = f'{{step: ask, type: condition, if: "1 = 1", then: request_human_approval, else: execute_tool(last), {same}}}'
    assert [where for _, where in gates_of(patient(written(tmp_path, text_of(ask))))] == ['step "ask"']


def test_at_the_command_line(tmp_path: Path) -> None:
    file = a_sign(tmp_path, "approvers: {groups: [ghosts]}")
    told = command("doctor", str(file.path))
    assert told.code == 2
    assert 'fail approvals: step "sign": there is no group "ghosts"' in " ".join(told.out.split())


def test_a_database_without_tables_is_a_note(tmp_path: Path) -> None:
    file = a_sign(tmp_path, "approvers: {groups: [finance]}")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE auth_group RENAME TO auth_group_elsewhere")
    try:
        ((status, message),) = told(file)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE auth_group_elsewhere RENAME TO auth_group")
    assert (status, message[:30]) == ("warn", "who may decide was not looked ")


@pytest.mark.only("sqlite")  # it brings its own
def test_where_there_is_no_database_none_is_made(tmp_path: Path) -> None:
    file = a_sign(tmp_path, "approvers: {groups: [finance]}")
    told = subprocess.run(
        [sys.executable, "manage.py", "doctor", str(file.path)],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path / 'none.db'}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "who may decide was not looked at: there is no database here yet" in " ".join(told.stdout.split())
    assert not (tmp_path / "none.db").exists()
