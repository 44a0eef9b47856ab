"""The store does what the store cases say, in the database and in memory."""

from __future__ import annotations

import contextlib

import pytest
from django.db import transaction

from statestore.entries import Store
from statestore.memory import MemoryStore, Shelf
from statestore.store import StateStore
from tests.conformance import cases
from tests.conformance.cases import Case
from tests.conformance.store_ops import Player
from tests.conftest import Clock

each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases.of(cases.STORE)])


@pytest.mark.django_db(transaction=True)
@each_case
def test_the_store_in_the_database_does_what_the_case_says(case: Case, clock: Clock) -> None:
    Player(lambda kinds: StateStore("default", "case", kinds=kinds), transaction.atomic, clock).play(case)


@each_case
def test_the_twin_in_memory_does_what_the_case_says(case: Case, clock: Clock) -> None:
    shelf = Shelf()

    def opens(kinds: tuple[str, ...]) -> Store:
        return MemoryStore("default", "case", kinds=kinds, shelf=shelf)

    Player(opens, contextlib.nullcontext, clock).play(case)
