"""Expired is absent for everything but `take_expired` (ST-1)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from statestore.entries import ABSENT, Store
from statestore.errors import BadLifetime
from tests.conftest import Clock


def test_a_later_put_replaces_the_expiry(store: Store, clock: Clock) -> None:
    store.put("a", 1, ttl=1)
    assert store.put("a", 2).expires_at is None
    clock.advance(5)
    assert store.get("a") == 2


def test_an_expired_entry_is_absent_for_every_operation(store: Store, clock: Clock) -> None:
    version = store.put("a", 1, ttl=10).version
    store.put("b", 1)
    clock.advance(10)
    assert store.get("a", ABSENT) is ABSENT
    assert not store.exists("a")
    assert store.versioned("a") is None
    assert list(store.several(["a", "b"])) == ["b"]
    assert store.list() == ("b",)
    assert [entry.key for entry in store.entries()] == ["b"]
    assert not store.bump("a", version)
    assert not store.replace("a", version, 2)
    assert not store.delete("a")
    assert not store.delete("a", version)
    assert store.claim("a", version) is ABSENT
    assert store.take_expired("a") == 1


def test_put_if_absent_succeeds_over_an_expired_entry(store: Store, clock: Clock) -> None:
    old = store.put("a", 3, ttl=1).version
    clock.advance(2)
    assert store.put_if_absent("a", 4, ttl=60)
    assert not store.put_if_absent("a", 5)
    seen = store.versioned("a")
    assert seen is not None
    assert seen.value == 4
    assert seen.version > old
    assert seen.expires_at is not None


def test_what_replaces_an_expired_entry_was_created_then(store: Store, clock: Clock) -> None:
    store.put("a", 1, ttl=1)
    (before,) = store.entries()
    clock.advance(100)
    store.put("a", 2)
    (after,) = store.entries()
    assert (after.created_at - before.created_at).total_seconds() == pytest.approx(100, abs=5)


def test_take_expired_leaves_a_live_entry_and_takes_an_expired_one_once(store: Store, clock: Clock) -> None:
    store.put("a", None, ttl=10)
    store.put("b", "stays")
    assert store.take_expired("a", ABSENT) is ABSENT
    clock.advance(11)
    assert store.take_expired("a", ABSENT) is None
    assert store.take_expired("a", ABSENT) is ABSENT
    assert store.take_expired("b") is None
    assert store.get("b") == "stays"


def test_seconds_and_timedeltas_are_lifetimes(store: Store, clock: Clock) -> None:
    a = store.put("a", 1, ttl=0.5)
    b = store.put("b", 1, ttl=timedelta(days=7))
    assert a.expires_at is not None
    assert b.expires_at is not None
    assert (b.expires_at - a.expires_at).total_seconds() == pytest.approx(7 * 86400 - 0.5, abs=5)
    clock.advance(1)
    assert store.list() == ("b",)


def test_the_clock_can_go_back(store: Store, clock: Clock) -> None:
    clock.advance(100)
    store.put("a", 1, ttl=10)
    clock.advance(-100)
    assert store.get("a") == 1
    clock.advance(111)
    assert not store.exists("a")


@pytest.mark.parametrize(
    "ttl",
    [0, -1, True, False, float("nan"), float("inf"), "60", timedelta(0), timedelta(seconds=-1), timedelta.max, 1e300],
)
def test_a_lifetime_that_is_none_is_refused(store: Store, ttl: Any) -> None:
    with pytest.raises(BadLifetime):
        store.put("a", 1, ttl=ttl)
    with pytest.raises(BadLifetime):
        store.put_if_absent("a", 1, ttl=ttl)
    assert not store.exists("a")
