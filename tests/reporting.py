"""Pytest plugin: a skip fails in CI, what is missing is named, and each run leaves its counts for the summary."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import databases
from tests.run import WITHOUT_DATABASE

_began = time.monotonic()
_suites: dict[str, dict[str, Any]] = {}
_facts: list[dict[str, str]] = []
_reasons: dict[str, int] = {}


def suite_of(nodeid: str) -> str:
    """The folder below `tests/` that a test lives in, or its file when it lies directly there."""
    parts = nodeid.split("::")[0].split("/")
    return parts[1] if len(parts) > 1 else parts[0]


def _row(nodeid: str) -> dict[str, Any]:
    return _suites.setdefault(suite_of(nodeid), {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})


def add_fact(nodeid: str, text: str) -> None:
    """Keep one measured sentence for the proving report."""
    _facts.append({"suite": suite_of(nodeid), "test": nodeid.split("::")[-1], "text": text})


def _reason(longrepr: Any) -> str:
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    return str(longrepr)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI nothing may be missing: turn a skip (and an expected failure) into a failure that names it."""
    if databases.IN_CI and report.skipped:
        reason = _reason(report.longrepr)
        report.outcome = "failed"
        vars(report).pop("wasxfail", None)
        report.longrepr = f"{report.nodeid} was skipped, and CI allows no skip: {reason}"


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # outermost: after pytest itself has judged expected failures
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    _refuse_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    outcome = yield
    _refuse_skip(outcome.get_result())


def _belongs_here(item: pytest.Item) -> bool:
    marks = ["only", "everyday"] if databases.SHARED else ["only"]
    wanted = [mark.args[0] for name in marks for mark in item.iter_markers(name)]
    return all(database == databases.DATABASE for database in wanted)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    elsewhere = [item for item in items if not _belongs_here(item)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]
    if databases.POSTGRES_MISSING:
        for item in items:
            if not item.nodeid.startswith(tuple(WITHOUT_DATABASE)):
                item.add_marker(pytest.mark.skip(reason=databases.POSTGRES_MISSING))


def pytest_collection_finish() -> None:
    """All that is loaded stays to the end: no look for garbage need go over it again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    row = _row(report.nodeid)
    row["seconds"] += report.duration
    if report.failed or report.skipped or report.when == "call":
        row[report.outcome] += 1
    if report.skipped:
        reason = _reason(report.longrepr)
        _reasons[reason] = _reasons.get(reason, 0) + 1


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        row = _row(report.nodeid)
        row["failed"] += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    if not databases.RESULT_FILE:
        return
    result = {
        "database": databases.DATABASE,
        "server": databases.POSTGRES_MISSING or databases.server_version(),
        "suites": _suites,
        "facts": _facts,
        "skipped": _reasons,
        "seconds": time.monotonic() - _began,
        "exit": int(exitstatus),
    }
    Path(databases.RESULT_FILE).write_text(json.dumps(result), encoding="utf-8")
