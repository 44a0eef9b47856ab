"""The demo's side of Kampong's HTTP interface: is it ready, what waits, start the first run."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any

FIRST_RUN = {"agent": "refund-clerk", "input": '{"order": "A-1042", "reason": "The cup arrived in two pieces"}'}
_PATIENCE = 30.0


class Refused(Exception):
    """The server answered, and not with what the demo needs; the text is what it said."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A request in the queue."""

    key: str
    run: str
    agent: str
    step: str
    reason: str


class Server:
    """Kampong on a port of this machine; never through a proxy of the environment."""

    def __init__(self, port: int) -> None:
        self._port = port

    def is_ready(self) -> bool:
        """Whether the database is migrated and a worker is at work."""
        try:
            return self._call("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def first_waiting(self, token: str) -> Waiting | None:
        """The oldest request that waits for a person."""
        items = self._need("GET", "/approvals?limit=1", token)["approvals"]
        if not items:
            return None
        item = items[0]
        return Waiting(
            key=item["key"], run=item["runId"], agent=item["agent"], step=item["step"], reason=item["reason"]
        )

    def start_first_run(self, token: str) -> Waiting:
        """A run that is paused by the time this returns."""
        run = self._need("POST", "/runs", token, FIRST_RUN)["id"]
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            found = self.first_waiting(token)
            if found is not None:
                return found
            state = self._need("GET", f"/runs/{run}", token)["state"]
            if state["status"] not in ("running", "awaiting_approval"):
                raise Refused(f"the first run {state['status']}: {state.get('error', 'it did not wait for anybody')}")
            time.sleep(0.05)
        raise Refused(f"the first run did not reach its pause within {_PATIENCE:.0f} s")

    def _need(self, method: str, path: str, token: str, body: Any = None) -> Any:
        status, said = self._call(method, path, token, body)
        if status >= 300:
            raise Refused(f"{method} {path}: {said.get('error', status)}")
        return said

    def _call(self, method: str, path: str, token: str = "", body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = None
        if body is not None:
            content = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()
