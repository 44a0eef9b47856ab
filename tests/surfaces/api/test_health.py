"""Liveness and readiness: for everybody, with names and no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.migrations.recorder import MigrationRecorder

from tests.conftest import Clock
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from workflows import beats
from workflows.draining import draining
from workflows.registry import SpecFile

pytestmark = pytest.mark.django_db


@pytest.fixture
def drained() -> Iterator[None]:
    draining.set()
    yield
    draining.clear()


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_a_living_process_says_so_without_asking_the_database(
    path: str, callers: Callers, django_assert_num_queries: object
) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        response = callers.nobody.get(path)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_it_is_ready_with_a_worker_seen_in_the_last_ten_seconds(
    callers: Callers, clerk: SpecFile, clock: Clock
) -> None:
    without = callers.nobody.get("/readyz")
    assert without.status_code == 503
    assert without.json()["checks"]["worker"] == {"ok": False, "alive": 0}
    beats.beat()
    ready = callers.nobody.get("/readyz/")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert ready.json()["specs"] == {"served": 1, "broken": []}
    clock.advance(11)
    assert callers.nobody.get("/readyz").status_code == 503


def test_a_broken_spec_is_named_with_its_first_fault_and_stops_nothing(
    callers: Callers, clerk: SpecFile, folder: Path
) -> None:
    beats.beat()
    (folder / "odd.yaml").write_text("agent: [canary")
    response = callers.nobody.get("/readyz")
    assert response.status_code == 200
    specs = response.json()["specs"]
    assert (specs["served"], [(one["file"], one["agent"]) for one in specs["broken"]]) == (1, [("odd.yaml", None)])
    assert re.match(r"\d+:\d+: ", specs["broken"][0]["error"])
    assert "canary" not in response.content.decode()
    assert str(folder) not in response.content.decode()


def test_of_a_fault_nobody_is_told_what_the_file_says_or_where_it_lies(
    callers: Callers, clerk: SpecFile, folder: Path
) -> None:
    (folder / "odd.yaml").write_text(
        clerk.text.replace("id: clerk", "id: odd").replace("type: approval", "type: sk-canary", 1)
    )
    (folder / "twice.yaml").write_text(clerk.text)
    response = callers.nobody.get("/readyz")
    odd, twice = response.json()["specs"]["broken"]
    assert odd["error"].endswith('or an "action"; its "type" is (not shown here)'), odd
    assert "agent.workflow.0.type: " in odd["error"]
    assert twice["error"] == f"agent id 'clerk' is already served from {clerk.path.name}"
    assert "canary" not in response.content.decode()
    assert str(folder) not in response.content.decode()


def test_a_missing_migration_is_named(callers: Callers, folder: Path) -> None:
    beats.beat()
    MigrationRecorder.Migration.objects.filter(app="workflows").delete()
    response = callers.nobody.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["migrations"]["missing"][0].startswith("workflows.")


def test_a_process_that_drains_wants_no_more_work(callers: Callers, folder: Path, drained: None) -> None:
    beats.beat()
    assert callers.nobody.get("/readyz").status_code == 503
    assert callers.nobody.get("/healthz").status_code == 200


def test_only_reading_is_answered(callers: Callers) -> None:
    check(callers.nobody.post("/healthz", {}), "method_not_allowed")
    check(callers.nobody.post("/readyz", {}), "method_not_allowed")
