"""What the page says of polls: its spec loads, it has every key, and its numbers are those of the code."""

from __future__ import annotations

from tests.demo.test_pages import blocks, text_of
from workflows.engine.polling import MOST_ITEMS
from workflows.spec.load import load
from workflows.spec.trigger_model import PollTrigger
from workflows.spec.trigger_shapes import POLL
from workflows.triggers import handover, hold, polls
from workflows.waits import WORKER_WAITS_SECONDS


def section() -> str:
    return text_of("docs/unattended.md").partition("## Polls\n")[2].partition("\n## ")[0]


def test_the_spec_loads_without_a_note() -> None:
    (text,) = blocks(section(), "yaml")
    loaded = load(text)
    assert (loaded.errors, loaded.notes) == ((), ())
    assert loaded.spec is not None
    assert isinstance(loaded.spec.agent.trigger, PollTrigger)
    assert text.partition("trigger:")[2].count(":") >= len(POLL.keys)


def test_the_page_has_every_key() -> None:
    assert [key for key in POLL.keys if key != "type" and f"| `{key}` |" not in section()] == []


def test_the_numbers_are_those_of_the_code() -> None:
    page = " ".join(section().split())
    for words in (
        f"An answer has {MOST_ITEMS:,} at most",
        f"one transaction, {handover.BATCH} items in each",
        f"and {hold.SPARE_SECONDS:.0f} seconds more",
    ):
        assert words in page
    assert (polls.MOST_RETRY_SECONDS, hold.READING_SECONDS, WORKER_WAITS_SECONDS) == (3600, 60, 60)
