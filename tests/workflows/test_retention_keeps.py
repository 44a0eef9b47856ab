"""What can be said about how long runs are kept, and how often what is long is done."""

from __future__ import annotations

import pytest

from workflows.housekeeping import SHORTEST_REST, Chore, rest_after
from workflows.models import FINAL
from workflows.retention import keeps, pruning
from workflows.rota import Rota

DAY = 24 * 3600


@pytest.mark.parametrize(
    ("text", "seconds", "number"),
    [
        ("forever", None, None),
        (" Forever ", None, None),
        ("90d", 90 * DAY, None),
        ("30s", 30, None),
        ("10000", None, 10000),
        ("90d 10000", 90 * DAY, 10000),
        ("10000  90d", 90 * DAY, 10000),
    ],
)
def test_what_can_be_said_of_runs(text: str, seconds: int | None, number: int | None) -> None:
    assert keeps.keep_of(keeps.read_keep(text)) == keeps.Keep(seconds=seconds, number=number)


@pytest.mark.parametrize(
    "text", ["", "0", "0d", "90 days", "-1", "1.5d", "90d 90d", "5 5", "forever 5", "37000d", "\u0669d"]
)
def test_what_cannot_be_said_is_refused_with_what_can(text: str) -> None:
    for read in (keeps.read_keep, keeps.read_age):
        with pytest.raises(ValueError, match="'forever' nor an age above 0 such as 90d"):
            read(text)
    with pytest.raises(ValueError, match="is neither"):
        keeps.read_age("10000")


def test_each_status_that_a_run_can_end_in_has_a_setting() -> None:
    assert set(keeps.SETTINGS) == {str(status) for status in FINAL}
    assert pruning.BATCH <= 100


class Passes:
    """A chore of so many passes that each take a while, by a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> None:
        self.moment = 100.0
        self.left = 0
        self._seconds = seconds
        monkeypatch.setattr("workflows.rota.time.monotonic", lambda: self.moment)

    def run(self) -> int:
        self.moment += self._seconds
        done = min(10, self.left)
        self.left -= done
        return done


def test_after_a_full_pass_a_chore_is_due_after_a_rest_and_after_any_other_when_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = Passes(monkeypatch, seconds=0.5)
    chore = Chore(name="purge", every_seconds=60, run=passes.run, batch=10)
    rota = Rota(lambda: (chore,))
    passes.left = 25
    for left in (15, 5):
        assert rota.due() == [chore]
        assert rota.do(chore) == 10
        assert (passes.left, rota.due()) == (left, [])
        assert rota.seconds_to_next(most=60) == pytest.approx(1.0), "twice as long as the pass took"
        passes.moment += 1.0
    assert rota.due() == [chore]
    assert rota.do(chore) == 5
    assert rota.seconds_to_next(most=100) == pytest.approx(59.5), "as before: the interval counts from when it was due"


def test_a_chore_without_batches_keeps_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(monkeypatch, seconds=0.0)
    chore = Chore(name="purge", every_seconds=60, run=passes.run)
    rota = Rota(lambda: (chore,))
    passes.left = 1000
    rota.due()
    rota.do(chore)
    assert rota.seconds_to_next(most=100) == 60


def test_a_rest_is_never_longer_than_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(monkeypatch, seconds=9.0)
    chore = Chore(name="expiry", every_seconds=1, run=passes.run, batch=10)
    rota = Rota(lambda: (chore,))
    passes.left = 1000
    rota.due()
    rota.do(chore)
    assert rota.seconds_to_next(most=100) == 1
    assert (rest_after(0.0), rest_after(3.0)) == (SHORTEST_REST, 6.0)
