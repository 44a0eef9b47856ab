"""The web shop: orders that come in, listed from a number on, and what was shipped of them."""

from __future__ import annotations

from typing import Any

from outside.saying import Call, Refused, Said

#: Orders of earlier days, which are looked up by their id.
KNOWN: dict[str, dict[str, Any]] = {
    "A-1042": {"item": "blue cup", "total": 48.5, "customer": "mei@example.org"},
    "A-1043": {"item": "set of six bowls", "total": 180, "customer": "ravi@example.org"},
    "A-1044": {"item": "teapot", "total": 72, "customer": "siti@example.org"},
}
#: What came in before anybody looked.
FIRST = (
    {"item": "two cups", "total": 64, "customer": "mei@example.org"},
    {"item": "milk jug", "total": 39, "customer": "ravi@example.org"},
)
_MOST = 100


class Orders:
    """Counts shipments for each order."""

    routes: tuple[str, ...] = (
        "GET /service/orders",
        "GET /service/orders?since",
        "POST /service/orders",
        "POST /service/shipments",
    )

    def __init__(self) -> None:
        self._placed: list[dict[str, Any]] = []
        self._shipped: dict[str, int] = {}
        for order in FIRST:
            self._place(order)

    def answer(self, call: Call) -> Said | None:
        if call.matches("GET", "orders"):
            return self._listed(call.query)
        if call.matches("GET", "orders", None):
            return self._looked_up(call.parts[1])
        if call.matches("POST", "orders"):
            order = {name: call.field(name) for name in ("item", "total", "customer")}
            if isinstance(order["total"], bool) or not isinstance(order["total"], int | float):
                raise Refused('"total" has to be a number')
            return Said(route="POST /service/orders", status=201, body=self._place(order), changed=True)
        if call.matches("POST", "shipments"):
            return self._ship(str(call.field("order")))
        return None

    def told(self) -> Any:
        """How often each order that came in was shipped; once is right."""
        return {order["id"]: self._shipped.get(order["id"], 0) for order in self._placed}

    def _place(self, order: dict[str, Any]) -> dict[str, Any]:
        number = len(self._placed) + 1
        self._placed.append({"id": f"B-{number}", "number": number, "currency": "SGD", **order})
        return self._placed[-1]

    def _listed(self, query: dict[str, str]) -> Said:
        """Those from the number `since` on, that one among them: as with a time, nobody knows what else bore it."""
        since, limit = query.get("since") or "1", query.get("limit") or str(_MOST)
        if not since.isdecimal() or not limit.isdecimal():
            raise Refused('"since" and "limit" have to be whole numbers')
        orders = self._placed[max(int(since), 1) - 1 :][: min(int(limit), _MOST)]
        last = orders[-1]["number"] if orders else int(since)
        return Said(route="GET /service/orders?since", body={"orders": orders, "last": last})

    def _looked_up(self, name: str) -> Said:
        route = "GET /service/orders"
        placed = next((order for order in self._placed if order["id"] == name), None)
        if placed is not None:
            return Said(route=route, body=placed)
        if name not in KNOWN:
            return Said(route=route, status=404, body={"error": _unknown(name)})
        return Said(route=route, body={"id": name, "currency": "SGD", **KNOWN[name]})

    def _ship(self, name: str) -> Said:
        route = "POST /service/shipments"
        if not any(order["id"] == name for order in self._placed):
            return Said(route=route, status=404, body={"error": _unknown(name)})
        self._shipped[name] = self._shipped.get(name, 0) + 1
        body = {"id": f"S-{sum(self._shipped.values())}", "order": name}
        return Said(route=route, status=201, body=body, changed=True)


def _unknown(name: str) -> str:
    return f"there is no order {name}; known are {', '.join(KNOWN)}"
