"""What a process does while it keeps house stands in its log: how much, once it is done, and nothing of none."""

from __future__ import annotations

import logging

import pytest

from workflows import chores, housekeeping
from workflows.rota import Rota


def test_each_chore_that_did_something_says_how_much_and_many_full_passes_are_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "_chores", {})
    passes = [100, 100, 7, 0, 3]
    failing = [True]

    def removes() -> int:
        if passes[0] == 7 and failing:
            failing.pop()
            raise RuntimeError("once")
        return passes.pop(0)

    housekeeping.register("finished runs", 60.0, removes, batch=100)
    housekeeping.register("expiry", 60.0, lambda: 0)
    rota = Rota()
    with caplog.at_level(logging.INFO, logger="kampong.worker"):
        while passes:
            for chore in housekeeping.chores():
                chores._do(rota, chore)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert told == ["finished runs: 207", "finished runs: 3"]
