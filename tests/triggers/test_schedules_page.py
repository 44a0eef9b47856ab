"""What the page says of schedules: its spec loads, it has every key, its example and numbers are those of the code."""

from __future__ import annotations

from tests.demo.test_pages import blocks, text_of
from tests.triggers.timewalk import utc
from workflows.spec.load import load
from workflows.spec.trigger_model import ScheduleTrigger
from workflows.spec.trigger_shapes import SCHEDULE
from workflows.times import rfc3339
from workflows.triggers import locks, schedules
from workflows.triggers.timetable import next_due


def section() -> str:
    return text_of("docs/unattended.md").partition("## Schedules\n")[2].partition("\n## ")[0]


def test_the_spec_loads_without_a_note_and_is_due_as_the_page_says() -> None:
    (text,) = blocks(section(), "yaml")
    loaded = load(text)
    assert (loaded.errors, loaded.notes) == ((), ())
    assert loaded.spec is not None
    trigger = loaded.spec.agent.trigger
    assert isinstance(trigger, ScheduleTrigger)
    assert f"`{rfc3339(next_due(trigger.cron, trigger.timezone, utc('2026-11-28 00:00')))}`" in section()


def test_the_page_has_every_key_and_number() -> None:
    page = " ".join(section().split())
    assert [key for key in SCHEDULE.keys if key != "type" and f"| `{key}` |" not in page] == []
    assert f"`{locks.KEY}`" in page
    assert f"after {schedules.RETRY_SECONDS} seconds, then" in page
    assert f"up to {schedules.MOST_RETRY_SECONDS // 60} minutes" in page
