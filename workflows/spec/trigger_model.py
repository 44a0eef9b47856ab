"""What starts a run, typed (format 9; spec 1.2, Triggers). Times are seconds."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from workflows.spec.model_base import Part

#: What `cursor` is before the first poll, and in a step.
FIRST_CURSOR: Final = ""
#: How long an item is known as seen, where a poll does not say it.
SEEN_SECONDS: Final = 30 * 86_400


class WebhookTrigger(Part):
    """`secret` is a reference as written, `${NAME}`; `dedupe` a template over the trigger."""

    type: Literal["webhook"] = "webhook"
    secret: str | None = None
    dedupe: str | None = None
    dedupe_ttl: int = 86_400


class ScheduleTrigger(Part):
    """`cron` has five fields and is read in the time zone named."""

    type: Literal["schedule"] = "schedule"
    cron: str
    timezone: str = "UTC"
    input: str = ""
    overlap: Literal["skip", "queue"] = "skip"
    lock_ttl: int = 3_600


class PollTrigger(Part):
    """`items` and `cursor` are expressions over the tool's output, `key` one over an item."""

    type: Literal["poll"] = "poll"
    every: int
    tool: str
    items: str
    key: str
    cursor: str | None = None
    seen_ttl: int = SEEN_SECONDS


Trigger: TypeAlias = WebhookTrigger | ScheduleTrigger | PollTrigger
