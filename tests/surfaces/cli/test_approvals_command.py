"""`approvals`: the queue from a terminal, under the named user's policy (design 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.models import ApprovalRequest, AuditEntry
from tests.conftest import Clock, People
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import command
from tests.workbench import ASKING, PAYING, PAYING_ANSWERS, to_pause, write_spec
from workflows.models import Run, Status

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "00000000-0000-4000-8000-000000000000"
AS = ("--as", "approver")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    with FakeTools(PAYING_ANSWERS) as tools:
        yield tools


@pytest.fixture
def key(tmp_path: Path, shop: FakeTools, people: People) -> str:
    """The key of a payment that waits."""
    return to_pause(write_spec(tmp_path, PAYING, url=shop.url))[1]


def test_the_list_is_empty_in_words_and_as_an_object(people: People) -> None:
    assert "Nothing waits" in command("approvals", "list", *AS).out
    assert command("approvals", "list", *AS, "--json").object() == {"success": True, "approvals": [], "next": None}


def test_the_list_goes_through_all_pages(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    _, first = to_pause(spec)
    request = ApprovalRequest.objects.get(key=first)
    many = 230
    for _ in range(many - 1):
        request.pk = None
        request.key = Run().uuid
        request.save(force_insert=True)
    assert len(command("approvals", "list", *AS, "--json").object()["approvals"]) == many
    lines = command("approvals", "list", *AS).out.splitlines()
    assert len(lines) == many + 1
    assert first in lines[1]


def test_a_line_of_the_list_says_what_waits_and_how_long(key: str) -> None:
    head, line = command("approvals", "list", *AS).out.splitlines()
    assert head.split() == ["KEY", "AGENT", "STEP", "KIND", "LEFT", "REASON"]
    for word in (key, "clerk", "pay", "tool pay", "6 d 23 h"):
        assert word in line


def test_show_says_what_will_run_and_never_a_secret(key: str) -> None:
    told = command("approvals", "show", key, *AS)
    assert told.code == 0
    for word in (key, "POST", "/pay", "120", "${PAY_TOKEN}", "may decide", "look"):
        assert word in told.out
    assert "tok-canary" not in told.out
    shown = command("approvals", "show", key, *AS, "--json").object()
    assert shown["success"] is True
    assert shown["digest"].startswith("1:")


def test_an_approval_drives_the_run_on_when_no_worker_lives(key: str, shop: FakeTools, people: People) -> None:
    told = command("approvals", "approve", key, "--reason", "fine", *AS)
    assert told.code == 0, told.err
    assert told.out.startswith("Approved by approver.")
    assert "completed" in told.out
    assert [request.url.rpartition("/")[2] for request in shop.requests] == ["invoice", "pay", "receipt"]
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.actor, entry.actor_user_id, entry.surface) == ("approver", people.approver.pk, "cli")
    assert (entry.outcome, entry.reason) == ("approved", "fine")
    assert "@" in entry.actor_detail  # the operating system's user and host


def test_the_object_of_an_approval_is_the_fresh_run(key: str) -> None:
    before = Run.objects.get()
    answer = command("approvals", "approve", key, *AS, "--json").object()
    assert answer["success"] is True
    assert answer["id"] != str(before.uuid)
    assert answer["resumedFrom"] == str(before.uuid)
    assert answer["state"]["status"] == "completed"


def test_a_run_that_pauses_again_exits_3_and_names_the_next_key(tmp_path: Path, people: People) -> None:
    _, key = to_pause(write_spec(tmp_path, ASKING))
    told = command("approvals", "approve", key, *AS)
    assert told.code == 3
    following = str(ApprovalRequest.objects.get(status="open").key)
    assert following != key
    assert f"approvals approve {following} --as approver " in told.out


def test_a_run_that_fails_after_the_approval_exits_2(key: str, shop: FakeTools) -> None:
    shop.script["POST /pay"] = {"status": 500, "text": "no"}
    told = command("approvals", "approve", key, *AS)
    assert told.code == 2
    assert "Approved by approver." in told.out
    assert "failed" in told.err
    assert "tok-canary" not in told.out + told.err


def test_a_rejection_ends_the_run_and_is_done(key: str, shop: FakeTools) -> None:
    told = command("approvals", "reject", key, "--reason", "too much", *AS)
    assert told.code == 0
    assert told.out.startswith("Rejected by approver.")
    assert Run.objects.get(status=Status.REJECTED).error == "too much"
    assert len(shop.requests) == 1


def test_who_comes_second_learns_who_decided(key: str) -> None:
    command("approvals", "reject", key, *AS)
    told = command("approvals", "approve", key, *AS, "--json")
    assert told.code == 2
    answer = told.object()
    assert (answer["success"], answer["code"]) == (False, "approval_not_found")
    assert (answer["decision"]["outcome"], answer["decision"]["by"]) == ("rejected", "approver")
    assert "rejected by approver" in command("approvals", "show", key, *AS).err


def test_an_unknown_key_is_one_clear_line(people: People) -> None:
    for key in (UNKNOWN, "no key at all", "", "\x1b[2J"):
        for verb in ("show", "approve", "reject"):
            told = command("approvals", verb, key, *AS)
            assert (told.code, told.out) == (2, "")
            assert len(told.err.splitlines()) == 1
            assert "\x1b" not in told.err


def test_who_may_not_is_refused_before_any_look_up(people: People) -> None:
    for who in ("stranger", "nobody at all"):
        for words in (["list"], ["show", UNKNOWN], ["approve", UNKNOWN], ["reject", UNKNOWN]):
            told = command("approvals", *words, "--as", who)
            assert (told.code, told.out) == (2, "")
            assert "resolved" not in told.err


def test_without_a_name_it_says_how_to_give_one(key: str, settings: Settings) -> None:
    told = command("approvals", "approve", key)
    assert told.code == 2
    assert "--as" in told.err
    assert "KAMPONG_CLI_USER" in told.err
    settings.KAMPONG_CLI_USER = "approver"
    assert command("approvals", "approve", key).code == 0


def test_a_changed_spec_is_refused_and_consumes_nothing(tmp_path: Path, key: str) -> None:
    path = tmp_path / "spec.yaml"
    before = path.read_text()
    path.write_text(before.replace("Pay what is due.", "Pay everything."))
    told = command("approvals", "approve", key, *AS)
    assert told.code == 2
    assert "changed" in told.err
    path.write_text(before)
    assert command("approvals", "approve", key, *AS).code == 0


def test_an_expired_one_is_not_listed_and_refused(key: str, clock: Clock) -> None:
    clock.advance(8 * 24 * 3600)
    assert "Nothing waits" in command("approvals", "list", *AS).out
    told = command("approvals", "approve", key, *AS)
    assert told.code == 2
    assert "expired" in told.err
