"""An outside service that has orders, and the agent that polls it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.test.utils import override_settings

from statestore.keys import CURSOR
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.fakes_tools import Answer, FakeTools, Recorded
from tests.workbench import write_spec
from workflows.engine import jsontext
from workflows.models import Run, TriggerState
from workflows.registry import SpecFile

TEXT = """\
version: "1.2"
{vars}agent:
  id: {agent_id}
  name: Order desk
  role: Clerk
  goal: Look at every order once.
  model: {{provider: {provider}, name: test-model}}
  trigger: {{type: poll, {trigger}}}
  tools:
    - name: list_orders
      action: http_request
      method: GET
      url: "{url}/orders"
      query: {{after: "{{{{ cursor }}}}"}}
      {tool}
  workflow:
    - {{step: look, type: approval, message: "Send {{{{ trigger.id }}}}?"}}
"""
TRIGGER = 'every: 1m, tool: list_orders, items: orders, key: id, cursor: "$max(orders.at)"'


def an_agent(
    folder: Path,
    url: str = "http://127.0.0.1:9",
    trigger: str = TRIGGER,
    *,
    tool: str = "",
    agent_id: str = "orders",
    provider: str = "ollama",
    vars: str = "",
) -> SpecFile:
    """The spec on disk: polls `GET /orders?after=CURSOR` and asks a person about each order."""
    words = {"trigger": trigger, "tool": tool, "provider": provider, "vars": vars}
    return write_spec(folder, TEXT, agent_id=agent_id, name=f"{agent_id}.yaml", url=url, **words)


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The specs in this folder, and no others."""
    with override_settings(KAMPONG_SPECS=[str(folder)]):
        yield


class Orders(FakeTools):
    """Orders with rising times; a question gets those after the time that it names, all of them without one.

    The answers in `first` come before all, one question each; one that is `held` waits to be let go.
    """

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[dict[str, Any]] = []
        self.first: list[Answer] = []
        self._go = threading.Event()

    def come(self, *names: str) -> None:
        """More orders."""
        self.orders += [{"id": name, "at": len(self.orders) + n} for n, name in enumerate(names, start=1)]

    def let_go(self) -> None:
        """Give the answers that are `held`."""
        self._go.set()

    @property
    def asked(self) -> list[str]:
        """The positions that were asked from, in order."""
        return [parse_qs(urlsplit(one.url).query, keep_blank_values=True)["after"][0] for one in self.requests]

    def answer(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
        self.requests.append(
            Recorded(method=method, url=self.url + target, headers=headers, body=body, at=time.monotonic())
        )
        if self.first:
            answer = self.first.pop(0)
            self._go.wait(answer.get("held", 0))
            return answer
        after = parse_qs(urlsplit(target).query).get("after", ["0"])[0]
        return {"json": {"orders": [order for order in self.orders if order["at"] > int(after)]}}


def row(agent_id: str = "orders") -> TriggerState:
    return TriggerState.objects.get(agent_id=agent_id)


def bodies() -> list[Any]:
    """What each run was started with, in the order of their start."""
    return [jsontext.loads(run.trigger)["body"] for run in Run.objects.order_by("id")]


def ids() -> list[Any]:
    return [body["id"] for body in bodies()]


def cursor(agent_id: str = "orders") -> Any:
    return StateStore("default", agent_id, kinds=(CURSOR,)).get("cursor:poll")


def seen() -> list[str]:
    """The runs that the keys of seen items name, in the order in which these were taken."""
    found = StateRecord.objects.filter(key__startswith="seen:").order_by("id")
    return [jsontext.loads(one.value)["run"] for one in found]


def one_run_each(*names: str) -> None:
    """Each of these orders has exactly one run, which its key names; there is no other run."""
    assert sorted(ids()) == sorted(names)
    assert sorted(seen()) == sorted(str(run.uuid) for run in Run.objects.all())
