"""A poll that is killed has started what its keys say and moved its position or not: the next one makes up the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statestore.models import StateRecord
from tests.conftest import Clock
from tests.crash.conftest import Child, dies
from tests.triggers.orders import Orders, an_agent, cursor, ids, one_run_each, row, served
from workflows.models import Run, SpecVersion
from workflows.triggers import handover
from workflows.triggers.polls import poll_next

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_OVER = 200.0
#: One batch more than goes in one transaction.
NAMES = [f"o{number}" for number in range(handover.BATCH + 1)]


@pytest.fixture
def orders() -> Iterator[Orders]:
    """The outside service; it counts."""
    with Orders() as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path, orders: Orders) -> Iterator[Path]:
    """Where the served spec lies."""
    an_agent(tmp_path, orders.url)
    with served(tmp_path):
        yield tmp_path


def killed(child: Child, folder: Path, point: str) -> None:
    dies(child("poll", faults=f"{point}=kill", KAMPONG_SPECS=str(folder)))


def nothing_written() -> bool:
    return not (Run.objects.exists() or StateRecord.objects.exists() or SpecVersion.objects.exists())


@pytest.mark.parametrize(("point", "asked"), [("poll.claimed", 0), ("poll.called", 1), ("poll.batch", 1)])
def test_before_its_first_commit_nothing_is_there(
    folder: Path, orders: Orders, child: Child, clock: Clock, point: str, asked: int
) -> None:
    orders.come("a", "b")
    killed(child, folder, point)
    assert nothing_written()
    assert (row().started, len(orders.asked)) == (0, asked)
    assert not poll_next(), "whoever died has it until its lease is over"
    clock.advance(LEASE_OVER)
    assert poll_next()
    one_run_each("a", "b")
    assert (cursor(), row().started, row().failures) == (2, 2, 0)
    assert orders.asked == [""] * (asked + 1)


def test_between_two_batches_the_first_is_known_and_the_position_has_not_moved(
    folder: Path, orders: Orders, child: Child, clock: Clock
) -> None:
    orders.come(*NAMES)
    killed(child, folder, "poll.batch_written")
    assert ids() == NAMES[:-1]
    assert (cursor(), row().started) == (None, handover.BATCH)
    clock.advance(LEASE_OVER)
    orders.come("later")
    assert poll_next()
    assert orders.asked == ["", ""]
    one_run_each(*NAMES, "later")
    assert (cursor(), row().started, row().new_items) == (len(NAMES) + 1, len(NAMES) + 1, 2)


@pytest.mark.parametrize("point", ["poll.batch_written", "poll.moved"])
def test_after_its_last_commit_all_is_done(
    folder: Path, orders: Orders, child: Child, clock: Clock, point: str
) -> None:
    orders.come("a", "b")
    killed(child, folder, point)
    one_run_each("a", "b")
    assert (cursor(), row().started, row().lease_until) == (2, 2, None)
    assert not poll_next(), "it is due in a minute"
    orders.come("c")
    clock.advance(61)
    assert poll_next()
    assert orders.asked == ["", "2"]
    one_run_each("a", "b", "c")
