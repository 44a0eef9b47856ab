"""When a schedule is due: five-field cron in a named time zone, each due time a moment in UTC (spec 1.2, Triggers)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim


def next_due(cron: str, zone: str, after: datetime) -> datetime:
    """The first due time beyond `after`, in UTC.

    A local time that daylight saving skips is due at the end of the gap, one that it repeats is due once.
    """
    return next(CronSim(cron, after.astimezone(ZoneInfo(zone)))).astimezone(UTC)
