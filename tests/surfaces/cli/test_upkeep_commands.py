"""`sweep`, `audit` and `api_token`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from knox.auth import TokenAuthentication

from approvals.models import ApiToken, AuditEntry
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import Clock, People
from tests.surfaces.cli.running import command
from tests.workbench import ASKING, to_pause, write_spec
from workflows.engine import jsontext
from workflows.models import Run, Status

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(out: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (line.rpartition(": ") for line in out.splitlines())}


def test_sweep_does_everything_that_is_due_and_counts_it(tmp_path: Path, clock: Clock) -> None:
    spec = write_spec(tmp_path, ASKING)
    runs = [to_pause(spec)[0] for _ in range(3)]
    store = StateStore("default", "clerk")
    for number in range(1201):  # more than one pass of the purge
        store.put(f"old-{number}", number, ttl=timedelta(seconds=5))
    store.put("kept", 1)
    clock.advance(8 * 24 * 3600)
    told = command("sweep")
    assert told.code == 0
    done = numbers(told.out)
    assert (done["expiry"], done["purge of expired entries"], done["sealing"]) == (3, 1201, 3)
    assert {run.status for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {Status.EXPIRED}
    assert [record.key for record in StateRecord.objects.all()] == ["kept"]
    assert set(numbers(command("sweep").out).values()) == {0}


def test_a_whole_chain_verifies_and_says_what_is_not_sealed_yet(tmp_path: Path, people: People) -> None:
    assert command("audit", "verify").code == 0
    spec = write_spec(tmp_path, ASKING)
    command("approvals", "reject", to_pause(spec)[1], "--as", "approver")
    assert "0 entries are sealed" in command("audit", "verify").out
    assert "1 not sealed yet" in command("audit", "verify").out
    command("sweep")
    told = command("audit", "verify")
    assert told.code == 0
    assert "1 entries are sealed" in told.out


@pytest.mark.parametrize("what", ["reason", "sealed_hash", "gone"])
def test_the_first_bad_link_is_named(what: str, tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    for _ in range(3):
        command("approvals", "reject", to_pause(spec)[1], "--reason", "no", "--as", "approver")
    command("sweep")
    second = AuditEntry.objects.filter(seal_no=2)
    if what == "gone":
        second.delete()
    else:
        second.update(**{what: "another"})
    told = command("audit", "verify")
    assert told.code == 2
    assert "entry 2" in told.err
    assert told.out == ""


def test_export_writes_one_object_a_line(tmp_path: Path, people: People) -> None:
    spec = write_spec(tmp_path, ASKING)
    for reason in ("one", "two\nlines"):
        command("approvals", "reject", to_pause(spec)[1], "--reason", reason, "--as", "approver")
    command("sweep")
    told = command("audit", "export")
    assert told.code == 0
    entries = [jsontext.loads(line) for line in told.out.splitlines()]
    assert [entry["reason"] for entry in entries] == ["one", "two\nlines"]
    assert entries[1]["previous"] == entries[0]["sealed_hash"]
    assert {"act", "actor", "actor_detail", "surface", "at", "own_hash", "seal_no"} <= set(entries[0])


def test_a_receipt_is_checked_against_the_seal_that_was_noted(tmp_path: Path, people: People) -> None:
    key = to_pause(write_spec(tmp_path, ASKING))[1]
    command("approvals", "reject", key, "--reason", "no", "--as", "approver")
    told = command("audit", "receipt", key)
    assert told.code == 0
    file = tmp_path / "receipt.json"
    file.write_text(told.out, encoding="utf-8")
    seal = command("audit", "verify").out.split()[-1]
    assert command("audit", "verify", "--receipt", str(file), "--head", seal).code == 0
    assert "Compare that seal" in command("audit", "verify", "--receipt", str(file)).out
    wrong = command("audit", "verify", "--receipt", str(file), "--head", "1:" + "0" * 64)
    assert (wrong.code, wrong.out) == (2, "")
    assert "does not pass through" in wrong.err
    file.write_text(told.out.replace("no", "yes"), encoding="utf-8")
    assert command("audit", "verify", "--receipt", str(file), "--head", seal).code == 2


def test_receipts_are_asked_for_by_key_and_checked_by_file(tmp_path: Path, people: People) -> None:
    assert command("audit", "receipt", "not-a-key").code == 2
    assert command("audit", "verify", "--receipt", str(tmp_path / "none")).code == 2
    assert command("audit", "verify", "--head", "1:ab").code == 64
    assert command("audit", "verify", "--receipt", "x", "--head", "ab").code == 64


def test_a_token_is_the_only_thing_on_stdout_and_stored_as_a_hash(people: People) -> None:
    told = command("api_token", "approver", "--name", "for the shop")
    assert told.code == 0
    token = told.out.strip()
    assert told.out == token + "\n"
    assert told.err == ""
    user, stored = TokenAuthentication().authenticate_credentials(token.encode())
    assert (user, stored.name) == (people.approver, "for the shop")
    assert token not in str(ApiToken.objects.values_list().get())


def test_no_token_is_made_for_a_user_who_could_not_use_it(people: People) -> None:
    people.stranger.is_active = False
    people.stranger.save(update_fields=["is_active"])
    for name in ("stranger", "nobody at all", "\x1b[2J"):
        told = command("api_token", name)
        assert (told.code, told.out) == (2, "")
        assert "\x1b" not in told.err
    assert not ApiToken.objects.exists()
