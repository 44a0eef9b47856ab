"""What runs while nobody looks, in every condition that a page shows; what services keep is put where they keep it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from django.test.utils import override_settings
from django.urls import reverse

from statestore.clock import now
from statestore.keys import CURSOR, HOOK, INCIDENT, LOCK, ONCE, SEEN
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.triggers.scheduling import WAITS, scheduled
from tests.workbench import ASKING, begin, work
from workflows.engine.values import Json
from workflows.models import Run, TriggerState
from workflows.registry import registry
from workflows.triggers import locks, state
from workflows.triggers.handover import POSITION

TRIGGERS = "/admin/workflows/triggerstate/"
FILES = TRIGGERS + "files/"
STORE = TRIGGERS + "store/"
POLL = """\
version: "1.2"
agent:
  id: orders
  name: Order desk
  role: Clerk
  goal: Look at every order once.
  model: {provider: ollama, name: test-model}
  trigger: {type: poll, every: 1m, tool: list_orders, items: orders, key: id, cursor: "$max(orders.at)"}
  tools:
    - {name: list_orders, action: http_request, method: GET, url: "http://127.0.0.1:9/orders"}
  workflow:
    - {step: look, type: approval}
"""
WEBHOOK = """\
version: "1.2"
agent:
  id: deliveries
  name: Deliveries
  role: Clerk
  goal: Look at every delivery once.
  model: {provider: ollama, name: test-model}
  trigger: {type: webhook, secret: "${HOOK_SECRET}", dedupe: "{{ trigger.id }}", dedupe_ttl: 12h}
  workflow:
    - {step: look, type: approval}
"""
BROKEN = POLL.replace("id: orders", "id: broken").replace("type: approval", "type: dance")


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The specs in this folder, and no others."""
    with override_settings(KAMPONG_SPECS=[str(folder)]):
        yield


def house(folder: Path) -> Run:
    """A schedule with a run going, a poll that failed, a webhook, a broken file; the schedule's run."""
    schedule = scheduled(
        folder, "0 8 * * mon-fri", "timezone: Asia/Singapore", agent_id="market", workflow=WAITS.replace("first", "ask")
    )
    (folder / "orders.yaml").write_text(POLL)
    (folder / "deliveries.yaml").write_text(WEBHOOK)
    (folder / "broken.yaml").write_text(BROKEN)
    state.sync(registry().files())
    run = begin(schedule, input="morning")
    work()
    moment = now()
    TriggerState.objects.filter(agent_id="market").update(
        last_due_at=moment - timedelta(hours=1),
        fired_at=moment - timedelta(hours=1),
        last_run=run,
        started=14,
        skipped=2,
        skipped_at=moment - timedelta(minutes=5),
    )
    TriggerState.objects.filter(agent_id="orders").update(
        failures=3,
        failed_at=moment - timedelta(minutes=2),
        retry_at=moment + timedelta(minutes=6),
        error="Tool list_orders failed: 503 Service Unavailable. The position did not move; it is polled again.",
        items=7,
        new_items=2,
        started=41,
    )
    put("market", locks.KEY, {"run": str(run.uuid), "due": "2026-11-27T00:00:00.000Z"}, 3600)
    put("orders", POSITION, {"after": "2026-11-27T06:00:00Z", "page": 4})
    return run


def put(agent_id: str, key: str, value: Json, seconds: float | None = None) -> int:
    """An entry as its service keeps it; the id of its row."""
    kind = next(kind for kind in (CURSOR, HOOK, INCIDENT, LOCK, ONCE, SEEN) if key.startswith(kind))
    StateStore("default", agent_id, kinds=(kind,)).put(key, value, seconds)
    return StateRecord.objects.get(workflow=agent_id, key=key).pk


def incident(run: str, key: str = "disk full", value: Json = "sda1 has 2 % left", agent_id: str = "market") -> int:
    opened = {"value": value, "openedAt": "2026-11-27T06:00:00.000Z", "runId": run}
    return put(agent_id, INCIDENT + key, opened, 86_400)


def item(run: str, key: str, agent_id: str = "orders") -> int:
    return put(agent_id, mark(key), {"run": run}, 86_400)


def mark(key: str) -> str:
    """The key of the entry that says that an item with this key was seen."""
    return SEEN + hashlib.sha256(key.encode()).hexdigest()


def reset_url(row_id: int) -> str:
    return reverse("admin:workflows_store_reset", args=[row_id])


def page_of(agent_id: str) -> str:
    """The page of this agent's trigger."""
    pk = TriggerState.objects.get(agent_id=agent_id).pk
    return reverse("admin:workflows_triggerstate_change", args=[pk])


def plain(folder: Path, agent_id: str) -> Path:
    """A spec that a person starts."""
    path = folder / f"{agent_id}.yaml"
    path.write_text(ASKING.format(agent_id=agent_id))
    return path
