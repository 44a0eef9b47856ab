"""The contract suite runs on each implementation: the database under test, and the in-memory twin."""

from __future__ import annotations

from typing import Protocol

import pytest

from statestore.entries import Store
from statestore.memory import MemoryStore, Shelf
from statestore.store import StateStore
from tests.databases import DATABASE

# A file about one database is no part of the suite on the other.
collect_ignore_glob = ["test_sqlite_*.py"] if DATABASE == "postgres" else ["test_postgres_*.py"]


class Opens(Protocol):
    """Opens a store on the implementation under test; two stores of one test share what is stored."""

    def __call__(self, workflow: str = "payer", workspace: str = "default", kinds: tuple[str, ...] = ()) -> Store: ...


@pytest.fixture(params=[pytest.param("database", marks=pytest.mark.django_db), "memory"])
def opens(request: pytest.FixtureRequest) -> Opens:
    if request.param == "database":

        def in_database(workflow: str = "payer", workspace: str = "default", kinds: tuple[str, ...] = ()) -> Store:
            return StateStore(workspace, workflow, kinds=kinds)

        return in_database

    shelf = Shelf()

    def in_memory(workflow: str = "payer", workspace: str = "default", kinds: tuple[str, ...] = ()) -> Store:
        return MemoryStore(workspace, workflow, kinds=kinds, shelf=shelf)

    return in_memory


@pytest.fixture
def store(opens: Opens) -> Store:
    return opens()
