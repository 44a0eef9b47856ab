"""The help desk: what customers wrote, ticket by ticket, and what they were answered."""

from __future__ import annotations

from typing import Any

from outside.saying import Call, Said

_WRITTEN = ("messages", "replies")


class Tickets:
    """Counts messages and replies for each ticket. A ticket is there once something was written on it."""

    routes: tuple[str, ...] = (
        "POST /service/tickets",
        "GET /service/tickets",
        "POST /service/tickets/messages",
        "POST /service/tickets/replies",
    )

    def __init__(self) -> None:
        self._opened = 0
        self._tickets: dict[str, dict[str, list[Any]]] = {}

    def answer(self, call: Call) -> Said | None:
        if call.matches("POST", "tickets"):
            self._opened += 1
            fields = call.body if isinstance(call.body, dict) else {"given": call.body}
            body = {**fields, "id": f"T-{self._opened}"}
            return Said(route="POST /service/tickets", status=201, body=body, changed=True)
        if call.matches("GET", "tickets", None):
            ticket = self._tickets.get(call.parts[1], {kind: [] for kind in _WRITTEN})
            return Said(route="GET /service/tickets", body={"id": call.parts[1], **ticket})
        for kind in _WRITTEN:
            if call.matches("POST", "tickets", None, kind):
                text = call.field("text")
                ticket = self._tickets.setdefault(call.parts[1], {kind: [] for kind in _WRITTEN})
                ticket[kind].append({**call.body, "text": text})
                body = {"id": f"{call.parts[1]}/{kind[0]}{len(ticket[kind])}"}
                return Said(route=f"POST /service/tickets/{kind}", status=201, body=body, changed=True)
        return None

    def told(self) -> Any:
        return {name: {kind: len(ticket[kind]) for kind in _WRITTEN} for name, ticket in self._tickets.items()}
