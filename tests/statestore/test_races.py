"""One winner, on both databases (scenarios 1, 20 and 58)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from django.db import connection, connections, transaction

from statestore.entries import ABSENT
from statestore.models import StateRecord
from statestore.store import StateStore
from tests.conftest import Clock
from tests.counts import count

Answer = TypeVar("Answer")

pytestmark = pytest.mark.django_db(transaction=True)


def together(*acts: Callable[[], Answer]) -> list[Answer]:
    """Do the acts at the same instant, each in a thread with its own connection; an error in one is raised here."""
    start = threading.Barrier(len(acts))
    answers: dict[int, Answer] = {}
    errors: list[BaseException] = []

    def work(number: int, act: Callable[[], Answer]) -> None:
        try:
            connection.ensure_connection()
            start.wait(30)
            answers[number] = act()
        except BaseException as error:  # noqa: BLE001  (handed to the test, which raises it)
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=item) for item in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(acts))]


def in_transaction(act: Callable[[], Answer]) -> Callable[[], Answer]:
    def wrapped() -> Answer:
        with transaction.atomic():
            return act()

    return wrapped


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def rows_left() -> bool:
    """Whether any row is there, live or expired."""
    return StateRecord.objects.exists()


@pytest.mark.parametrize("wrap", [lambda act: act, in_transaction], ids=["alone", "in a transaction"])
def test_of_eight_deletes_one_is_true(wrap: Callable[[Any], Any]) -> None:
    store = StateStore("default", "payer")
    for _ in range(count(10, 50)):
        store.put("k", 1)
        answers = together(*[wrap(lambda: store.delete("k"))] * 8)
        assert sorted(answers) == [False] * 7 + [True]


@pytest.mark.parametrize("wrap", [lambda act: act, in_transaction], ids=["alone", "in a transaction"])
def test_of_eight_claims_one_gets_the_value(wrap: Callable[[Any], Any]) -> None:
    store = StateStore("default", "payer")
    for number in range(count(10, 50)):
        version = store.put("k", number).version
        answers = together(*[wrap(lambda version=version: store.claim("k", version))] * 8)
        assert [answer for answer in answers if answer is not ABSENT] == [number]


def test_of_eight_puts_if_absent_one_wins_and_its_value_stays() -> None:
    store = StateStore("default", "payer")
    for _ in range(count(10, 50)):
        answers = together(*[lambda mine=mine: store.put_if_absent("k", mine) for mine in range(8)])
        assert sorted(answers) == [False] * 7 + [True]
        assert store.get("k") == answers.index(True)
        store.delete("k")


def test_one_of_eight_replaces_an_expired_entry(clock: Clock) -> None:
    store = StateStore("default", "payer")
    for _ in range(count(5, 50)):
        store.put("k", "old", ttl=10)
        clock.advance(11)
        answers = together(*[lambda mine=mine: store.put_if_absent("k", mine) for mine in range(8)])
        assert sorted(answers) == [False] * 7 + [True]
        assert store.get("k") == answers.index(True)
        store.delete("k")


def test_of_eight_acts_on_one_version_one_goes_on() -> None:
    store = StateStore("default", "payer")
    for _ in range(count(10, 50)):
        version = store.put("k", 1).version
        answers = together(*[lambda version=version: store.bump("k", version)] * 8)
        assert sorted(answers) == [False] * 7 + [True]


def test_expiry_and_claim_in_the_same_instant_have_one_winner(report: Callable[[str], None]) -> None:
    """Both act within a millisecond of the end of the lifetime, on either side of it."""
    store = StateStore("default", "payer", kinds=("approval:",))
    rounds, claims = count(50, 100), 0
    for number in range(rounds):
        written = store.put("approval:k", number, ttl=0.05)
        assert written.expires_at is not None
        instant = written.expires_at.timestamp()

        def claim(instant: float = instant, version: int = written.version) -> Any:
            sleep_until(instant + random.uniform(-0.001, 0.001))
            return store.claim("approval:k", version)

        def expire(instant: float = instant) -> Any:
            sleep_until(instant + random.uniform(-0.001, 0.001))
            while (value := store.take_expired("approval:k", ABSENT)) is ABSENT and rows_left():
                pass
            return value

        claimed, expired = together(claim, expire)
        assert [value for value in (claimed, expired) if value is not ABSENT] == [number]
        claims += claimed is not ABSENT
    report(f"{rounds} rounds of claim against expiry, one winner each: {claims} claimed, {rounds - claims} expired")


def test_a_claim_that_rolls_back_leaves_the_entry_for_the_next() -> None:
    store = StateStore("default", "payer")
    version = store.put("k", "v", ttl=60).version
    with transaction.atomic():
        assert store.claim("k", version) == "v"
        transaction.set_rollback(True)  # as when the last write of the decision fails
    assert store.claim("k", version) == "v"
