"""The pager of the incident desk: pages that wake somebody, and alerts that are noted on an incident."""

from __future__ import annotations

from typing import Any

from outside.saying import Call, Said

_KINDS = {"pages": "N", "alerts": "L"}


class Incidents:
    """Counts pages and alerts for each incident."""

    routes: tuple[str, ...] = ("POST /service/pages", "POST /service/alerts")

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._made = dict.fromkeys(_KINDS, 0)

    def answer(self, call: Call) -> Said | None:
        for kind, letter in _KINDS.items():
            if call.matches("POST", kind):
                counts = self._counts.setdefault(str(call.field("incident")), dict.fromkeys(_KINDS, 0))
                counts[kind] += 1
                self._made[kind] += 1
                body = {**call.body, "id": f"{letter}-{self._made[kind]}"}
                return Said(route=f"POST /service/{kind}", status=201, body=body, changed=True)
        return None

    def told(self) -> Any:
        return self._counts
