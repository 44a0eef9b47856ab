"""A market with prices for every minute, always the same ones, and a sheet whose lines are written once."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from outside.saying import Call, Refused, Said

BASES = {"TIN": 31_250.0, "RICE": 512.0, "PALM": 978.0}
#: By how much a price is off its base at most, in per cent: two of them are never further apart than twice that.
_SWING = 1.5
_BETWEEN = timedelta(minutes=5)


class Market:
    """Prices by the minute; `POST /service/market` moves one from a time on, until now nothing moves far."""

    routes: tuple[str, ...] = ("GET /service/prices", "POST /service/market", "PUT /service/sheet")

    def __init__(self) -> None:
        self._moves: list[tuple[datetime, str, float]] = []
        self._sheet: dict[str, Any] = {}
        self._written: dict[str, int] = {}

    def answer(self, call: Call) -> Said | None:
        if call.matches("GET", "prices"):
            return self._prices(_moment(call.query.get("at", "")))
        if call.matches("POST", "market"):
            symbol, percent = call.field("symbol"), float(call.field("percent"))
            if symbol not in BASES:
                raise Refused(f"there is no {symbol}; known are {', '.join(BASES)}")
            # Kept with the call, so that it is the same time when the service is started again.
            at = call.body.setdefault("at", _text(datetime.now(UTC)))
            self._moves.append((_moment(at), symbol, percent))
            return Said(route="POST /service/market", status=201, body=dict(call.body), changed=True)
        if call.matches("PUT", "sheet", None):
            return self._write(call.parts[1], call.field("rows"))
        return None

    def told(self) -> Any:
        rows = sum(len(line) for line in self._sheet.values())
        return {"lines": self._written, "rows": rows}

    def _prices(self, at: datetime) -> Said:
        prices = [
            {"symbol": symbol, "price": self._price(symbol, at), "before": self._price(symbol, at - _BETWEEN)}
            for symbol in BASES
        ]
        return Said(route="GET /service/prices", body={"at": _text(at), "prices": prices})

    def _price(self, symbol: str, at: datetime) -> float:
        digest = hashlib.sha256(f"{symbol} {_text(at)}".encode()).digest()
        off = (digest[0] / 255 * 2 - 1) * _SWING
        price = BASES[symbol] * (1 + off / 100)
        for since, which, percent in self._moves:
            if which == symbol and since <= at:
                price *= 1 + percent / 100
        return round(price, 2)

    def _write(self, line: str, rows: Any) -> Said:
        """The line of a time. The same again is no news, and other rows are refused: what is written stands."""
        if not isinstance(rows, list):
            raise Refused('"rows" has to be a list')
        before = self._sheet.setdefault(line, rows)
        self._written[line] = self._written.get(line, 0) + 1
        if before != rows:
            error = f"the line {line} is written already, with other rows"
            return Said(route="PUT /service/sheet", status=409, body={"error": error}, changed=True)
        return Said(route="PUT /service/sheet", body={"line": line, "rows": len(rows)}, changed=True)


def _moment(text: str) -> datetime:
    """The minute in a text as RFC 3339 has it; now when it is empty."""
    try:
        moment = datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError:
        raise Refused(f'"{text}" is no time; write one such as 2026-01-05T08:05:00Z') from None
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:00Z")
