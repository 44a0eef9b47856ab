"""The demo's service: what it counts outlives it, and one key is one deed."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.unattended.outside import Outside

pytestmark = pytest.mark.only("sqlite")  # it has a file of its own and no database


def send(outside: Outside, method: str, path: str, body: Any = None, key: str = "") -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return httpx2.request(method, f"{outside.url}/service/{path}", json=body, headers=headers)


def test_its_counts_outlive_it_and_a_repeat_with_the_same_key_does_nothing(outside: Outside) -> None:
    page = {"incident": "disk-7", "text": "full"}
    rows = {"rows": [{"symbol": "TIN"}]}
    first = [
        send(outside, "POST", "pages", page, "run-3"),
        send(outside, "PUT", "sheet/2026-01-05T08:05:00Z", rows, "run-2"),
        send(outside, "POST", "shipments", {"order": "B-1"}, "run-1"),
        send(outside, "POST", "tickets/K-7/messages", {"text": "hello"}),
        send(outside, "POST", "orders", {"item": "cup", "total": 20, "customer": "mei@example.org"}),
    ]
    assert [answer.status_code for answer in first] == [201, 200, 201, 201, 201]
    with (outside.folder / "calls").open("a") as file:
        file.write('POST /service/pages\t{"method": "PO\n')  # as when the machine went down
    told, calls = outside.told(), outside.calls()
    outside.kill()
    outside.start()
    assert (outside.told(), outside.calls()) == (told, calls | {"POST /service/pages": 2})

    assert send(outside, "POST", "pages", page, "run-3").json() == first[0].json()
    assert send(outside, "POST", "shipments", {"order": "B-1"}, "run-1").json() == first[2].json()
    assert outside.told() == told | {"repeats": 2}
    send(outside, "POST", "pages", page, "run-4")
    assert outside.told()["incidents"] == {"disk-7": {"pages": 2, "alerts": 0}}, "what is doubled is seen"


def test_what_is_written_on_the_sheet_stands(outside: Outside) -> None:
    line = "sheet/2026-01-05T08:05:00Z"
    statuses = [send(outside, "PUT", line, {"rows": rows}).status_code for rows in ([1], [1], [2])]
    assert statuses == [200, 200, 409]
    assert outside.told()["sheet"] == {"lines": {"2026-01-05T08:05:00Z": 3}, "rows": 1}


def test_prices_are_the_same_whenever_they_are_asked_for_and_move_when_told(outside: Outside) -> None:
    def tin(at: str) -> Any:
        return send(outside, "GET", f"prices?at={at}").json()["prices"][0]

    before = tin("2026-01-05T08:05:30Z")
    assert tin("2026-01-05T16:05:00%2B08:00") == before
    assert abs(before["price"] / before["before"] - 1) < 0.05
    outside.tell("market", {"symbol": "TIN", "percent": 9, "at": "2026-01-05T08:04:00Z"})
    assert tin("2026-01-05T08:05:00Z") == before | {"price": round(before["price"] * 1.09, 2)}


#: Method, path and body of a call, and what is said to it.
WRONG: list[tuple[str, str, Any, int, str]] = [
    ("POST", "pages", {"text": "full"}, 400, 'an object with "incident"'),
    ("POST", "pages", [1], 400, 'an object with "incident"'),
    ("POST", "orders", {"item": "cup", "total": "20", "customer": "mei"}, 400, '"total" has to be a number'),
    ("POST", "shipments", {"order": "B-99"}, 404, "there is no order B-99"),
    ("POST", "market", {"symbol": "GOLD", "percent": 9}, 400, "known are TIN"),
    ("POST", "market", {"symbol": "TIN", "percent": "x"}, 400, "not what this route takes"),
    ("PUT", "sheet/x", {"rows": 1}, 400, "has to be a list"),
    ("GET", "prices?at=soon", None, 400, "is no time"),
    ("GET", "orders?since=x", None, 400, "whole numbers"),
]


def test_what_it_cannot_take_it_says_and_keeps_nothing(outside: Outside) -> None:
    told = outside.told()
    for method, path, body, status, said in WRONG:
        answer = send(outside, method, path, body)
        assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert outside.told() == told
