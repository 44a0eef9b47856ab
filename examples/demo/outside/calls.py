"""Every call that was made, in a file with one line for each: what the services know outlives their process."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

from outside.incidents import Incidents
from outside.market import Market
from outside.orders import Orders
from outside.saying import Call, Outside, Said
from outside.tickets import Tickets

#: What can be made with POST and is no more than that, and how its ids begin.
MADE = {"refunds": "R", "cases": "C", "messages": "M", "payments": "P"}


class Things:
    """What is made with POST and asked for by nobody."""

    routes: tuple[str, ...] = tuple(f"POST /service/{name}" for name in MADE)

    def __init__(self) -> None:
        self._made = dict.fromkeys(MADE, 0)

    def answer(self, call: Call) -> Said | None:
        for name, letter in MADE.items():
            if call.matches("POST", name):
                self._made[name] += 1
                fields = call.body if isinstance(call.body, dict) else {"given": call.body}
                body = {**fields, "id": f"{letter}-{self._made[name]}"}
                return Said(route=f"POST /service/{name}", status=201, body=body, changed=True)
        return None

    def told(self) -> Any:
        return self._made


class Calls:
    """The services, and how often each of their routes was called.

    A line of the file is a route, and behind a tab what a call changed. A call whose `Idempotency-Key` was there
    before on the same path changes nothing and gets the first answer: it is counted as a call, and as a repeat.
    """

    def __init__(self, path: Path, *more: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._services: dict[str, Outside] = {
            "incidents": Incidents(),
            "tickets": Tickets(),
            "sheet": Market(),
            "orders": Orders(),
            "made": Things(),
        }
        self._answers: dict[tuple[str, str], Said] = {}
        self._repeats = 0
        routes = [route for service in self._services.values() for route in service.routes]
        self.counts = dict.fromkeys([*routes, *more], 0)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._read(line)

    def told(self) -> dict[str, Any]:
        """What each service did, and for what; `repeats` are the calls that changed nothing because of their key."""
        with self._lock:
            return {
                **{name: service.told() for name, service in self._services.items()},
                "repeats": self._repeats,
            }

    def count(self, route: str) -> int:
        """Note one call of a route that no service here has; how many there are now."""
        with self._lock:
            self._note(route)
            return self.counts[route]

    def answer(self, method: str, target: str, body: Any, key: str | None = None) -> Said | None:
        """What the service says whose route it is; None when it is nobody's."""
        with self._lock:
            said, repeated = self._answered(method, target, body, key)
            if said is not None:
                change = {"method": method, "target": target, "body": body, "key": key}
                self._note(said.route, change if said.changed or repeated else None)
            return said

    def _answered(self, method: str, target: str, body: Any, key: str | None) -> tuple[Said | None, bool]:
        before = self._answers.get((target, key)) if key else None
        if before is not None:
            self._repeats += 1
            return before, True
        call = Call.of(method, target, body)
        said = next((said for service in self._services.values() if (said := service.answer(call))), None)
        if said is not None and said.changed and key:
            self._answers[target, key] = said
        return said, False

    def _note(self, route: str, change: dict[str, Any] | None = None) -> None:
        self.counts[route] = self.counts.get(route, 0) + 1
        line = route if change is None else f"{route}\t{json.dumps(change)}"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _read(self, line: str) -> None:
        route, tab, change = line.partition("\t")
        self.counts[route] = self.counts.get(route, 0) + 1
        if tab:
            with contextlib.suppress(ValueError):  # a line that was torn when the machine went down
                self._answered(**json.loads(change))
