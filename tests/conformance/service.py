"""A served spec over HTTP: one caller who may do everything, and a worker that drives what is queued."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from approvals.tokens import create_token
from tests.conformance import matching
from tests.conformance.cases import known
from tests.conformance.matching import CaseError, Handler, Unmet, shown
from tests.conftest import Processes
from workflows import registry
from workflows.engine import jsontext
from workflows.worker import WorkerPool

CALL: Final = frozenset({"call", "headers", "json", "raw", "until_status", "expect"})
_NAME: Final = re.compile(r"\{(\w+)\}")
_JSON: Final = "application/json"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back; `body` is the JSON in `text`."""

    status: int
    text: str
    body: Any


def forget() -> None:
    """Drop what this process has read of specs, and its connections."""
    registry.registry.cache_clear()
    registry.pinned.cache_clear()
    connections.close_all()


class Service:
    """Makes the calls of a case. `names` are what paths may refer to: ids of runs, and keys."""

    def __init__(self, user: User) -> None:
        self.names: dict[str, str] = {}
        self._token = create_token(user, "case")
        self._pool = WorkerPool(1)

    def start(self) -> None:
        self._pool.start()

    def stop(self) -> None:
        """Let the worker finish; Unmet when it does not."""
        if unfinished := self._pool.stop(20):
            raise Unmet(f"the worker did not finish {unfinished}")

    def restart(self) -> None:
        """Nothing in memory is left: other workers, no spec read, no connection open."""
        self.stop()
        forget()
        self._pool = WorkerPool(1)
        self.start()

    def post(self, line: Mapping[str, Any]) -> Any:
        """Make the call once; Django's own response."""
        method, _, path = line["call"].partition(" ")
        headers = {name.lower(): text for name, text in (line.get("headers") or {}).items()}
        kind = headers.pop("content-type", _JSON)
        body = jsontext.dumps(line["json"]) if "json" in line else line.get("raw", "")
        return Client().generic(
            method,
            _NAME.sub(lambda found: self.name(found[1]), path),
            body.encode(),
            content_type=kind,
            headers=headers | {"Authorization": f"Bearer {self._token}"},
        )

    def send(self, line: Mapping[str, Any]) -> Answer:
        """Make the call once; its answer is JSON."""
        response = self.post(line)
        text = response.content.decode()
        try:
            return Answer(status=response.status_code, text=text, body=jsontext.loads(text))
        except ValueError as error:
            raise Unmet(f"{line['call']}: {response.status_code} with a body that is no JSON: {text!r}") from error

    def call(self, where: str, line: Mapping[str, Any]) -> Answer:
        """Make the call, again and again until the state has the wanted status, if one is."""
        known(where, line, CALL)
        answer = self.send(line)
        end = time.monotonic() + 60
        while "until_status" in line and _status(answer) != line["until_status"]:
            if time.monotonic() > end:
                raise Unmet(f"{where}: the status did not become {line['until_status']}: {shown(answer.body)}")
            time.sleep(0.02)
            answer = self.send(line)
        return answer

    def name(self, name: str) -> str:
        """What a name of the case stands for."""
        if name not in self.names:
            raise CaseError(f"the name {name} stands for nothing yet")
        return self.names[name]

    def play(self, where: str, line: Mapping[str, Any], handlers: Mapping[str, Handler]) -> None:
        """The call with its expectations."""
        matching.by_key(f"{where}.expect", line.get("expect") or {}, self.call(where, line), handlers)

    def expectations(self) -> dict[str, Handler]:
        """What may be expected of any call."""
        return {
            "status": lambda where, wanted, found: matching.equal(where, wanted, found.status),
            "json": lambda where, wanted, found: matching.subset(where, wanted, found.body),
            "lacks": lambda where, wanted, found: matching.lacks(where, wanted, found.text),
            "save_id": lambda where, wanted, found: self.names.update({wanted: found.body["id"]}),
        }


def _status(answer: Answer) -> Any:
    state = answer.body.get("state") if isinstance(answer.body, Mapping) else None
    return state.get("status") if isinstance(state, Mapping) else None


def refuses_to_start(manage: Processes, spec: Path) -> None:
    """Unmet unless `serve` exits by itself, with a failure that is no crash."""
    ended = manage.run("serve", "--port", "0", str(spec))
    if ended.returncode == 0 or not ended.stderr or "Traceback" in ended.stderr:
        raise Unmet(f"serve: exit code {ended.returncode}, {ended.stdout!r}, {ended.stderr!r}")
