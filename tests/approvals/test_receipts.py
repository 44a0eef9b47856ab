"""The receipt of one request: checked offline, by our command and by a script that knows nothing of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from approvals import audit, receipts
from approvals.errors import ApprovalNotFound
from approvals.models import AuditEntry
from approvals.services import decide
from tests.conftest import ROOT, People
from tests.workbench import ASKING, acting, to_pause, write_spec
from workflows.errors import NotPossible

pytestmark = pytest.mark.django_db(transaction=True)

CHECKER = ROOT / "docs" / "check_receipt.py"
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def key(tmp_path: Path, people: People) -> str:
    """The second of three requests that were decided and sealed."""
    spec = write_spec(tmp_path, ASKING)
    keys = [to_pause(spec)[1] for _ in range(3)]
    for each in keys:
        decide(each, approved=False, reason="zu teuer: 12 €\n<b>no</b> \u202e", actor=acting(people.approver))
    assert audit.seal() == 3
    return keys[1]


def check(file: Path, *noted: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(CHECKER), str(file), *noted]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_receipt_holds_and_leads_to_the_seal_that_was_noted(tmp_path: Path, key: str) -> None:
    noted = audit.verify()
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipts.receipt(key)), encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert receipts.fault(found) is None
    assert receipts.fault(found, (noted.sealed, noted.head)) is None
    assert [entry["outcome"] for entry in found["entries"]] == ["rejected"]
    told = check(file, f"{noted.sealed}:{noted.head}")
    assert told.returncode == 0, told.stderr
    assert "decide rejected by" in told.stdout


def forge_reason(found: dict[str, Any]) -> None:
    found["entries"][0]["reason"] = "fine"


def forge_all(found: dict[str, Any]) -> None:
    """Whoever makes a whole receipt anew comes to another head."""
    forge_reason(found)
    entry = AuditEntry.objects.get(seal_no=2)
    entry.reason = "fine"
    own = found["entries"][0]["own_hash"] = found["links"][0] = audit.own_hash(entry)
    link = audit.sealed_hash(2, found["start"]["previous"], own)
    found["head"]["hash"] = audit.sealed_hash(3, link, found["links"][1])


def forge_details(found: dict[str, Any]) -> None:
    found["entries"][0]["details"] = '{"glass_broken":true}'


def forge_key(found: dict[str, Any]) -> None:
    found["key"] = NOBODY


def cut(found: dict[str, Any]) -> None:
    found["links"].pop()


@pytest.mark.parametrize("forge", [forge_reason, forge_all, forge_details, forge_key, cut])
def test_whatever_is_changed_is_found(tmp_path: Path, key: str, forge: Callable[[dict[str, Any]], None]) -> None:
    noted = audit.verify()
    found = json.loads(json.dumps(receipts.receipt(key)))
    forge(found)
    assert receipts.fault(found, (noted.sealed, noted.head)) is not None
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    assert check(file, f"{noted.sealed}:{noted.head}").returncode == 1


@pytest.mark.parametrize(
    "found", [None, [], "x", 5, {}, {"format": 1}, {"format": 1, "start": {"no": "x"}}, {"format": 2}]
)
def test_what_is_no_receipt_is_told(found: Any) -> None:
    assert receipts.fault(found) is not None


def test_an_unknown_key_has_no_receipt(db: None) -> None:
    for text in (NOBODY, "x"):
        with pytest.raises(ApprovalNotFound):
            receipts.receipt(text)


def test_what_is_not_sealed_has_none_yet(tmp_path: Path, people: People) -> None:
    key = to_pause(write_spec(tmp_path, ASKING))[1]
    decide(key, approved=True, actor=acting(people.approver))
    with pytest.raises(NotPossible, match="not sealed"):
        receipts.receipt(key)
    assert audit.seal() == 1
    assert receipts.fault(receipts.receipt(key)) is None
