"""The examples load, and each of the things that its own introduction says to try is what happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import Told, command
from workflows.spec.load import load

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
DEMO = "http://127.0.0.1:8787"

ORDER = {"id": "A-1042", "customer": "mei@example.org", "item": "Teapot", "total": 48.5, "currency": "SGD"}
PRICES = {
    "at": "2026-01-05T08:05:00Z",
    "prices": [{"symbol": "TIN", "price": 31000, "before": 30000}, {"symbol": "RICE", "price": 500, "before": 510}],
}
SERVICE: dict[str, Any] = {
    "GET /service/orders/A-1042": {"json": ORDER},
    "POST /service/refunds": {"json": {"id": "R-1"}},
    "POST /service/cases": {"json": {"id": "C-1"}},
    "POST /service/messages": {"json": {"id": "M-1"}},
    "POST /service/payments": {"json": {"id": "P-1"}},
    "POST /service/tickets": {"json": {"id": "T-1"}},
    "GET /service/prices": {"json": PRICES},
    "PUT /service/sheet/2026-01-05T08%3A05%3A00Z": {"json": {"rows": 2}},
    "POST /service/shipments": {"json": {"id": "S-1"}},
    "POST /slack/chat.postMessage": {"json": {"ok": True, "ts": "1796000000.000001"}},
}
SURE = {"due": True, "amount": 48.5, "message": "Your money is on its way.", "confidence": 0.93}
ASKED = json.dumps({"order": "A-1042", "reason": "The cup arrived in two pieces"})
INVOICE = json.dumps({"vendor": "Lim & Daughters", "number": "2026-118", "amount": 1840.5, "currency": "SGD"})
PLACED = json.dumps({"id": "B-1", "item": "two cups", "total": 640, "customer": "mei@example.org"})
PAYOUT = json.dumps({"to": "Mei Tan", "amount": 900})


@pytest.fixture
def service() -> Iterator[FakeTools]:
    with FakeTools(SERVICE) as service:
        yield service
        assert service.failures == []


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models
        assert models.failures == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_loads_and_its_introduction_names_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert load(text).errors == ()
    assert text.startswith("# ")
    assert f"run_spec examples/{path.name}" in text


def test_there_are_at_least_three_with_an_agent_id_each() -> None:
    ids = [spec.agent.id for path in EXAMPLES if (spec := load(path.read_bytes()).spec)]
    assert len(ids) >= 3
    assert len(ids) == len(set(ids))


def run(name: str, folder: Path, service: FakeTools, models: FakeModels, *words: str, text: str = "") -> Told:
    """The example with the demo's address replaced by the servers of this test."""
    content = (ROOT / "examples" / name).read_text(encoding="utf-8")
    content = content.replace(f'base_url: "{DEMO}"', f'base_url: "{models.url}"').replace(DEMO, service.url)
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return command("run_spec", str(path), *words, "--json", text=text)


def paths(service: FakeTools) -> list[str]:
    return [request.url.rpartition("/service/")[2] for request in service.requests]


def test_a_refund_is_paid_after_one_yes(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    models.answers["judge"] = {"object": SURE}
    told = run("refund.yaml", tmp_path, service, models, "--input", ASKED, text="y\n")
    assert told.code == 0, told.err + told.out
    assert paths(service) == ["orders/A-1042", "refunds", "messages"]
    assert service.requests[1].json() == {
        "order": "A-1042",
        "amount": 48.5,
        "currency": "SGD",
        "reason": "The cup arrived in two pieces",
    }
    assert service.requests[2].json()["about"] == "R-1"


def test_a_refund_is_not_paid_after_a_no(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    models.answers["judge"] = {"object": SURE}
    told = run("refund.yaml", tmp_path, service, models, "--input", ASKED, text="n: too late\n")
    assert (told.code, told.object()["error"]) == (2, "too late")
    assert paths(service) == ["orders/A-1042"]


def test_an_unsure_judgement_is_asked_about_first(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    models.answers["judge"] = {"object": SURE | {"confidence": 0.4}}
    told = run("refund.yaml", tmp_path, service, models, "--input", ASKED, text="y\nn\n")
    assert told.code == 2
    assert "kind: guardrail" in told.err
    assert "kind: tool" in told.err


def test_a_refund_over_the_limit_becomes_a_case(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    models.answers["judge"] = {"object": SURE}
    told = run("refund.yaml", tmp_path, service, models, "--input", ASKED, "--var", "largest_refund=20")
    assert told.code == 0, told.err
    assert paths(service) == ["orders/A-1042", "cases", "messages"]


@pytest.mark.parametrize(("words", "days"), [([], 30), (["--var", "pay_in_days=3"], 3)])
def test_an_invoice_is_scheduled_after_a_yes(
    words: list[str], days: int, tmp_path: Path, service: FakeTools, models: FakeModels
) -> None:
    told = run("invoice-approval.yaml", tmp_path, service, models, "--input", INVOICE, *words, text="y\n")
    assert told.code == 0, told.err
    assert f"1840.5 SGD to Lim & Daughters for invoice 2026-118, in {days} days?" in told.err
    assert service.requests[0].json() == {
        "vendor": "Lim & Daughters",
        "invoice": "2026-118",
        "amount": 1840.5,
        "currency": "SGD",
        "in_days": days,
        "note": "approved without a remark",
    }


@pytest.mark.parametrize(
    ("line", "account"),
    [('y {"account": "main"}\n', "main"), ('y {"account": "petty cash", "in_days": 3}\n', "petty cash")],
)
def test_a_payout_leaves_from_the_account_that_was_answered(
    line: str, account: str, tmp_path: Path, service: FakeTools, models: FakeModels
) -> None:
    told = run("payout.yaml", tmp_path, service, models, "--input", PAYOUT, text=line)
    assert told.code == 0, told.err
    days = 3 if "in_days" in line else 0
    assert service.requests[0].json() == {"vendor": "Mei Tan", "amount": 900, "account": account, "in_days": days}


def test_a_payout_without_an_account_is_not_made(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    for words, text in (([], "y\n"), (["--approve-all"], "")):
        told = run("payout.yaml", tmp_path, service, models, "--input", PAYOUT, *words, text=text)
        assert told.code == 2
        assert "answers.account: is required" in told.object()["error"]
    assert service.requests == []


@pytest.mark.parametrize(
    ("given", "words", "text", "at"),
    [
        ("", [], "", ""),
        ("2026-01-05T08:05:00Z", [], "", "2026-01-05T08%3A05%3A00Z"),
        ("", ["--header", "scheduled-at=2026-01-05T08:05:00Z"], "", "2026-01-05T08%3A05%3A00Z"),
        ("", ["--var", "far=3"], "y\n", ""),
    ],
)
def test_prices_are_written_and_somebody_is_asked_when_one_moved_far(
    given: str, words: list[str], text: str, at: str, tmp_path: Path, service: FakeTools, models: FakeModels
) -> None:
    told = run("market.yaml", tmp_path, service, models, "--input", given, *words, text=text)
    assert told.code == 0, told.err
    assert ("TIN 30000, 31000; RICE 510, 500" in told.err) == bool(text)
    assert paths(service) == [f"prices?at={at}", "sheet/2026-01-05T08%3A05%3A00Z"]
    assert service.requests[1].json() == {
        "rows": [
            {"symbol": "TIN", "price": 31000, "percent": 3.33},
            {"symbol": "RICE", "price": 500, "percent": -1.96},
        ]
    }
    assert (service.requests[1].header("Idempotency-Key") or "").endswith("-2")


def test_a_wrong_price_is_not_written(tmp_path: Path, service: FakeTools, models: FakeModels) -> None:
    words = ["--input", "", "--var", "far=0"]
    told = run("market.yaml", tmp_path, service, models, *words, text="n: that price is wrong\n")
    assert (told.code, paths(service)) == (2, ["prices?at="])


@pytest.mark.parametrize(
    ("total", "text", "shipped"), [(199, "", True), (200, "y\n", True), (640, "n: ask for the address\n", False)]
)
def test_a_big_order_is_shipped_after_a_yes(
    total: int, text: str, shipped: bool, tmp_path: Path, service: FakeTools, models: FakeModels
) -> None:
    order = json.dumps(json.loads(PLACED) | {"total": total})
    told = run("orders.yaml", tmp_path, service, models, "--input", order, text=text)
    assert told.code == (0 if shipped else 2), told.err
    assert [request.json() for request in service.requests] == [{"order": "B-1", "to": "mei@example.org"}] * shipped


@pytest.mark.parametrize(("words", "channel"), [([], "#morning"), (["--var", "channel=#night"], "#night")])
def test_a_note_is_posted_to_slack_after_a_yes(
    words: list[str],
    channel: str,
    tmp_path: Path,
    service: FakeTools,
    models: FakeModels,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.KAMPONG_SLACK_API_URL = f"{service.url}/slack"
    monkeypatch.setenv("SLACK_BOT_TOKEN", "demo")
    told = run("handover.yaml", tmp_path, service, models, "--input", "Lift 2 is out.", *words, text="y\n")
    assert (told.code, told.object()["output"]) == (0, {"tell": "1796000000.000001"}), told.err
    assert service.requests[0].json() == {"channel": channel, "text": "From the last shift:\nLift 2 is out."}
    assert service.requests[0].header("Authorization") == "Bearer demo"


@pytest.mark.parametrize(
    ("urgent", "confidence", "answers", "called"),
    [
        (False, 0.9, "", ["messages", "tickets"]),
        (True, 0.9, "y\n", ["tickets"]),
        (True, 0.9, "n\n", []),
        (False, 0.3, "y\n", ["messages", "tickets"]),
        (False, 0.3, "n\n", []),
    ],
)
def test_mail_is_sorted_and_a_person_sees_what_is_urgent_or_unsure(
    urgent: bool,
    confidence: float,
    answers: str,
    called: list[str],
    tmp_path: Path,
    service: FakeTools,
    models: FakeModels,
) -> None:
    models.answers["sort"] = {"result": {"desk": "repairs", "urgent": urgent}, "confidence": confidence}
    models.answers["reply"] = "Thank you."
    told = run("triage.yaml", tmp_path, service, models, "--input", "Water!", text=answers)
    assert told.code == (2 if answers == "n\n" else 0), told.err
    assert paths(service) == called
    if told.code == 0:
        assert "The ticket is T-1, at the desk for repairs." in models.requests[-1].prompt
        assert service.requests[-1].json() == {"desk": "repairs", "text": "Water!"}
