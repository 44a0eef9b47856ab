"""When a schedule is due: the documented rule through both changes of the clock, from wherever one starts (69)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counts import count
from tests.triggers.timewalk import due_times, utc
from workflows.spec.trigger_shapes import cron_problem
from workflows.triggers.timetable import latest_due, next_due

NEW_YORK, LORD_HOWE, SYDNEY = "America/New_York", "Australia/Lord_Howe", "Australia/Sydney"
#: Each with the UTC days around its changes, forward and back; half an hour in Lord Howe, at midnight in Beirut.
CHANGES = {
    NEW_YORK: ("2026-03-08", "2026-11-01"),
    LORD_HOWE: ("2026-10-03", "2026-04-04"),
    SYDNEY: ("2026-10-03", "2026-04-04"),
    "Asia/Beirut": ("2026-03-28", "2026-10-24"),
    "Asia/Singapore": ("2026-03-08", "2026-11-01"),
    "UTC": ("2026-03-08", "2026-11-01"),
}
DAY = timedelta(days=1)


def walked(cron: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """The due times in between, one from the other."""
    found, at = [], begin
    while (at := next_due(cron, zone, at)) < end:
        found.append(at)
    return found


@pytest.mark.parametrize(
    ("cron", "zone", "begin", "due"),
    [
        # Skipped: at the end of the gap, once, however many were skipped; the next day at its own time.
        ("30 2 * * *", NEW_YORK, "2026-03-07 12:00", ["2026-03-08 07:00", "2026-03-09 06:30"]),
        ("0,30 2 * * *", NEW_YORK, "2026-03-07 12:00", ["2026-03-08 07:00", "2026-03-09 06:00", "2026-03-09 06:30"]),
        ("*/20 2 * * *", NEW_YORK, "2026-03-07 12:00", ["2026-03-08 07:00", "2026-03-09 06:00"]),
        ("0 */2 8 3 *", NEW_YORK, "2026-03-08 04:30", ["2026-03-08 05:00", "2026-03-08 07:00", "2026-03-08 08:00"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03 00:00", ["2026-10-03 15:30", "2026-10-04 15:15"]),
        # A job of every hour loses nothing, and is not started once more.
        ("15 * * * *", NEW_YORK, "2026-03-08 05:30", ["2026-03-08 06:15", "2026-03-08 07:15", "2026-03-08 08:15"]),
        # Repeated: once, the first time.
        ("30 1 * * *", NEW_YORK, "2026-10-31 12:00", ["2026-11-01 05:30", "2026-11-02 06:30"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04 00:00", ["2026-04-04 14:45", "2026-04-05 15:15"]),
        # What says how often goes on in the second hour.
        ("*/30 * * * *", NEW_YORK, "2026-11-01 05:00", ["2026-11-01 05:30", "2026-11-01 06:00", "2026-11-01 06:30"]),
        ("*/30 1 * * *", NEW_YORK, "2026-11-01 05:00", ["2026-11-01 05:30", "2026-11-01 06:00", "2026-11-01 06:30"]),
        # Started inside the second hour: nothing of the first one is due any more.
        ("50 1 * * *", NEW_YORK, "2026-11-01 06:45", ["2026-11-02 06:50"]),
        # Of another offset than the start, by whole hours of the new one.
        ("*/30 3 * * *", LORD_HOWE, "2026-04-04 15:15", ["2026-04-04 16:30", "2026-04-04 17:00"]),
        ("0 8 * * mon-fri", "Asia/Singapore", "2026-11-27 00:00", ["2026-11-30 00:00", "2026-12-01 00:00"]),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", ["2028-02-29 00:00"]),
    ],
)
def test_the_rule(cron: str, zone: str, begin: str, due: list[str]) -> None:
    found, at = [], utc(begin)
    for _ in due:
        at = next_due(cron, zone, at)
        found.append(at)
    assert found == [utc(text) for text in due]


@st.composite
def fields(draw: st.DrawFn) -> str:
    """Mostly around the hours at which clocks change."""
    minute = draw(st.sampled_from(["*", "*/30", "*/7", "0", "15", "30", "59", "0,30", "10-50/20", "5/25"]))
    hour = draw(st.sampled_from(["*", "*/2", "0", "1", "2", "3", "1-3", "0,23", "*/1"]))
    day, weekday = draw(st.sampled_from([("*", "*"), ("1,4-8", "*"), ("*", "0"), ("1", "6"), ("*/2", "7")]))
    return f"{minute} {hour} {day} * {weekday}"


@settings(max_examples=count(60, 3000), deadline=None)
@given(
    cron=fields(),
    zone=st.sampled_from(sorted(CHANGES)),
    back=st.booleans(),
    minutes=st.integers(0, 2 * 1440),
    seconds=st.floats(0, 59.9),
)
def test_wherever_one_starts_the_moments_are_those_of_the_clock_on_the_wall(
    cron: str, zone: str, back: bool, minutes: int, seconds: float
) -> None:
    begin = utc(CHANGES[zone][back]) - DAY / 2
    end = begin + 3 * DAY
    due = due_times(cron, zone, begin, end)
    start = begin + timedelta(minutes=minutes, seconds=seconds)
    assert walked(cron, zone, start, end) == [moment for moment in due if moment > start]
    missed = [moment for moment in due if moment <= start]
    if missed:
        assert latest_due(cron, zone, missed[0], start) == missed[-1]


def test_a_long_outage_costs_next_to_nothing() -> None:
    begin, until = utc("1996-01-01 00:00"), utc("2026-11-29 10:00") + timedelta(seconds=30)
    assert latest_due("* * * * *", NEW_YORK, begin, until) == utc("2026-11-29 10:00")
    assert latest_due("0 0 29 2 *", "UTC", utc("1996-02-29 00:00"), until) == utc("2024-02-29 00:00")


def test_a_schedule_that_is_never_due_is_an_error_of_the_file() -> None:
    assert cron_problem("0 0 */30 2 mon#5") == "is never due"
    assert "1000 at most" in str(cron_problem(f"*/{'1' * 5000} * * * *")), "no number can be too long to be read"
    assert cron_problem("0 0 29 2 *") is None
    with pytest.raises(ValueError, match="never due"):
        next_due("0 0 */30 2 mon#5", "UTC", utc("2026-01-01 00:00"))
