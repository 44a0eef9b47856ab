"""When a schedule is due: five-field cron in a named time zone, each due time a moment in UTC (spec 1.2, Triggers).

The rule where clocks change. A local time that is skipped is due once, at the end of the gap; a schedule that is due in
every hour loses nothing there and gains nothing. One that is repeated is due once, the first time; a schedule with `*`
as its minute or hour says how often and not when, and is due in both.

CronSim is asked about local times alone. Asked about a zone, what it answers depends on where it starts: from inside
the repeated hour it names moments that are past, and where clocks move by half an hour it passes some by.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_NOTHING = timedelta(0)


def next_due(cron: str, zone: str, after: datetime) -> datetime:
    """The first due time beyond `after`, in UTC. The same moments, wherever one starts."""
    place = ZoneInfo(zone)
    at = after.astimezone(UTC)
    # Where the clock is put back soon, local times that are past come again.
    back = max(_NOTHING, _offset(place, at) - _offset(place, at + _DAY))
    times = CronSim(cron, at.astimezone(place).replace(tzinfo=None, fold=0) - back)
    often = times.parts[1].startswith("*") or times.parts[2].startswith("*")
    hourly = len(times.hours) == 24
    best: datetime | None = None
    for local in times:
        moments = _moments(place, local, twice=often, skipped=not hourly)
        ahead = [moment for moment in moments if moment > at]
        if not ahead:
            continue
        best = min(ahead[0], best or ahead[0])
        if ahead == moments:
            # Whatever local time comes later is first shown later.
            return best
    if best is None:
        raise ValueError(f"the schedule {cron!r} is never due")
    return best


def latest_due(cron: str, zone: str, due: datetime, until: datetime) -> datetime:
    """The last due time that is not beyond `until`, from one that is not."""
    beyond = until
    while (following := next_due(cron, zone, due)) <= until:
        later = next_due(cron, zone, due + (beyond - due) / 2)
        if later <= until:
            due = later
        else:
            beyond, due = due + (beyond - due) / 2, following
    return due


def _moments(place: ZoneInfo, local: datetime, *, twice: bool, skipped: bool) -> list[datetime]:
    """When the clock shows this local time: once, twice, or, as a time that is skipped, at the end of the gap."""
    first, second = _as_utc(place, local, 0), _as_utc(place, local, 1)
    if second < first:
        return [_change(place, second, first)] if skipped else []
    return [first, second] if twice and second > first else [first]


def _as_utc(place: ZoneInfo, local: datetime, fold: int) -> datetime:
    return local.replace(tzinfo=place, fold=fold).astimezone(UTC)


def _change(place: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The second in which the clock is changed, between these two."""
    old = _offset(place, before)
    while after - before > _SECOND:
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if _offset(place, middle) == old:
            before = middle
        else:
            after = middle
    return after


def _offset(place: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(place).utcoffset() or _NOTHING
