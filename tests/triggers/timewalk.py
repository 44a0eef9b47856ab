"""When a schedule is due, found by looking at the clock on the wall in every minute: the documented rule by hand.

Knows nothing of `timetable.py` and of CronSim. Fields are `*`, numbers, ranges, lists and steps of these.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
#: Longer than any clock is put back.
BEFORE = timedelta(hours=6)


def numbers(field: str, low: int, high: int) -> frozenset[int]:
    """The numbers that a field names."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else int(first)
        end = high if first == "*" or (step and not last) else int(last or first)
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)


@functools.lru_cache(maxsize=64)
def wall(zone: str, begin: datetime, end: datetime) -> tuple[tuple[datetime, datetime], ...]:
    """Every minute of this time in UTC, and what a clock in the zone shows then."""
    place = ZoneInfo(zone)
    minutes = (begin + MINUTE * number for number in range(int((end - begin) / MINUTE)))
    return tuple((minute, minute.astimezone(place).replace(tzinfo=None)) for minute in minutes)


def due_times(cron: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """The due times from `begin` on and before `end`, both whole minutes in UTC."""
    fields = cron.split()
    minutes, hours = numbers(fields[0], 0, 59), numbers(fields[1], 0, 23)
    days, months, weekdays = numbers(fields[2], 1, 31), numbers(fields[3], 1, 12), numbers(fields[4], 0, 7)
    either = not fields[2].startswith("*") and not fields[4].startswith("*")

    def named(local: datetime) -> bool:
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        day, weekday = local.day in days, not weekdays.isdisjoint({local.isoweekday(), local.isoweekday() % 7})
        return (day or weekday) if either else (day and weekday)

    often = "*" in (fields[0][0], fields[1][0])
    found: list[datetime] = []
    latest: datetime | None = None
    for minute, local in wall(zone, begin - BEFORE, end):
        due = named(local)
        if latest is not None and local <= latest:
            due = due and often
        elif latest is not None and len(hours) < 24:
            skipped = latest + MINUTE
            while skipped < local and not due:
                due = named(skipped)
                skipped += MINUTE
        latest = local if latest is None else max(latest, local)
        if due and minute >= begin:
            found.append(minute)
    return found


def utc(text: str) -> datetime:
    """`2026-11-01 05:30` in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
