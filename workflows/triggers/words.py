"""When an agent starts runs, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from workflows.spec.model import Spec
from workflows.spec.trigger_model import PollTrigger, ScheduleTrigger, WebhookTrigger
from workflows.webhooks import secret_variable

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def when(spec: Spec) -> str:
    """`At 08:00 on Monday through Friday (0 8 * * mon-fri), Asia/Singapore`; `every 1m with list_orders`."""
    match spec.agent.trigger:
        case ScheduleTrigger(cron=cron, timezone=zone):
            said = CronSim(cron, datetime.now(UTC)).explain()
            return f"{said} ({cron}), {zone}"
        case PollTrigger(every=seconds, tool=tool):
            return f"every {span(seconds)} with {tool}"
        case _:
            return webhook(spec) if is_called(spec) else "when somebody asks for it"


def kind(spec: Spec) -> str:
    """`schedule`, `poll` or `webhook`; empty where nothing but a person or a program starts it."""
    trigger = spec.agent.trigger
    if isinstance(trigger, ScheduleTrigger | PollTrigger):
        return trigger.type
    return "webhook" if is_called(spec) else ""


def is_called(spec: Spec) -> bool:
    """Whether it says that a webhook starts it, or has a secret for one."""
    return isinstance(spec.agent.trigger, WebhookTrigger) or secret_variable(spec) is not None


def webhook(spec: Spec) -> str:
    """`webhook, signed (HOOK_SECRET), each delivery once (for 1d)`."""
    variable = secret_variable(spec)
    trigger = spec.agent.trigger
    proof = f"signed ({variable})" if variable is not None else "by token"
    if isinstance(trigger, WebhookTrigger) and trigger.dedupe is not None:
        return f"webhook, {proof}, each delivery once (for {span(trigger.dedupe_ttl)})"
    return f"webhook, {proof}, no dedupe: every delivery starts a run"


def span(seconds: int) -> str:
    """As a spec says it: `30s`, `1m`, `36h`, `30d`."""
    for size, name in _UNITS:
        if seconds % size == 0:
            return f"{seconds // size}{name}"
    return f"{seconds}s"


def in_zone(moment: datetime, zone: str) -> str:
    """`2026-11-30 08:00:00 +08 (Asia/Singapore)`."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()} ({zone})"
