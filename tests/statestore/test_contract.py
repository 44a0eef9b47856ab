"""What every store does with values, versions and lists (engine semantics 22, design 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from statestore.entries import ABSENT, Lifetime, Store
from statestore.errors import BadKey, BadLifetime, NotJson, TooLarge
from statestore.scope import MAX_APPROVAL_BYTES, MAX_USER_BYTES
from tests.statestore.conftest import Opens


def test_it_gives_back_what_was_put(store: Store) -> None:
    value = {"b": [1, 2.5, None, True], "a": "Grüße \U0001f600", "": {}}
    store.put("k", value)
    assert store.get("k") == value
    assert list(store.get("k")) == ["b", "a", ""]


def test_it_tells_a_stored_null_from_no_entry(store: Store) -> None:
    store.put("k", None)
    assert store.get("k", ABSENT) is None
    assert store.get("other", ABSENT) is ABSENT
    assert store.get("other") is None
    assert store.exists("k")
    assert not store.exists("other")


def test_a_later_put_replaces_the_value_and_raises_the_version(store: Store) -> None:
    first = store.put("k", 1)
    second = store.put("k", 2)
    assert store.get("k") == 2
    assert second.version == first.version + 1


def test_put_if_absent_writes_once_and_again_after_a_delete(store: Store) -> None:
    assert store.put_if_absent("k", 1)
    assert not store.put_if_absent("k", 2)
    assert store.get("k") == 1
    assert store.delete("k")
    assert store.put_if_absent("k", 3)
    assert store.get("k") == 3


def test_delete_is_true_exactly_once(store: Store) -> None:
    store.put("k", 1)
    assert store.delete("k") is True
    assert store.delete("k") is False
    assert store.get("k", ABSENT) is ABSENT


def test_delete_with_a_version_spares_an_entry_that_has_moved_on(store: Store) -> None:
    old = store.put("k", 1).version
    new = store.put("k", 2).version
    assert not store.delete("k", old)
    assert store.get("k") == 2
    assert store.delete("k", new)


def test_a_version_read_before_a_delete_never_matches_the_next_entry(store: Store) -> None:
    old = store.put("k", 1).version
    store.delete("k")
    store.put("k", 2)
    assert not store.delete("k", old)
    assert not store.bump("k", old)
    assert store.get("k") == 2


def test_a_claim_hands_the_value_to_one_caller(store: Store) -> None:
    version = store.put("k", {"step": 3}).version
    assert store.claim("k", version + 1) is ABSENT
    assert store.claim("k", version) == {"step": 3}
    assert store.claim("k", version) is ABSENT
    store.put("k", None)
    assert store.claim("k") is None
    assert store.claim("k") is ABSENT


def test_of_two_acts_on_one_version_the_second_learns_that_it_lost(store: Store) -> None:
    written = store.put("k", "v", ttl=60)
    assert store.bump("k", written.version)
    assert not store.bump("k", written.version)
    seen = store.versioned("k")
    assert seen is not None
    assert (seen.value, seen.version, seen.expires_at) == ("v", written.version + 1, written.expires_at)
    assert not store.bump("other", written.version)


def test_replace_changes_the_value_and_keeps_the_expiry(store: Store) -> None:
    written = store.put("k", 1, ttl=60)
    assert store.replace("k", written.version, 2)
    assert not store.replace("k", written.version, 3)
    seen = store.versioned("k")
    assert seen is not None
    assert (seen.value, seen.version, seen.expires_at) == (2, written.version + 1, written.expires_at)


@pytest.mark.parametrize(("ttl", "later"), [(600, 600), (timedelta(minutes=5), 300), (None, None)])
def test_renew_changes_the_lifetime_alone_and_only_of_the_entry_as_read(
    store: Store, ttl: Lifetime, later: float | None
) -> None:
    written = store.put("k", {"run": 1}, ttl=60)
    assert store.renew("k", written.version, ttl)
    assert not store.renew("k", written.version, ttl)
    seen = store.versioned("k")
    assert seen is not None
    assert (seen.value, seen.version) == ({"run": 1}, written.version + 1)
    if later is None:
        assert seen.expires_at is None
        return
    assert seen.expires_at is not None
    assert written.expires_at is not None
    more = (seen.expires_at - written.expires_at).total_seconds()
    assert later - 60 <= more < later


def test_renew_brings_back_nothing_that_is_over_and_takes_no_lifetime_that_is_none(store: Store) -> None:
    written = store.put("k", 1, ttl=60)
    with pytest.raises(BadLifetime):
        store.renew("k", written.version, 0)
    assert store.delete("k")
    assert not store.renew("k", written.version, 60)
    assert not store.exists("k")


def test_versioned_is_none_when_there_is_no_entry(store: Store) -> None:
    assert store.versioned("k") is None


def test_several_finds_the_live_ones_among_many(store: Store) -> None:
    for number in range(0, 1500, 75):
        store.put(f"k{number}", number, ttl=600 if number % 2 else None)
    found = store.several(f"k{number}" for number in range(1500))
    assert {key: entry.value for key, entry in found.items()} == {f"k{number}": number for number in range(0, 1500, 75)}
    assert found["k75"] == store.versioned("k75")
    assert found["k0"].expires_at is None
    assert store.several([]) == {}
    with pytest.raises(BadKey):
        store.several(["k0", ""])


def test_list_reads_a_prefix_in_code_point_order_page_by_page(store: Store) -> None:
    for key in ["b", "a%", "a_", "ab", "a", "A", "aé", "a\U0001f600", "a\ud7ff", "\uff41"]:
        store.put(key, key)
    everything = store.list()
    assert list(everything) == sorted(everything)
    assert store.list("a") == ("a", "a%", "a_", "ab", "aé", "a\ud7ff", "a\U0001f600")
    assert store.list("a", limit=2) == ("a", "a%")
    assert store.list("a", after="a%", limit=2) == ("a_", "ab")
    assert store.list("a%") == ("a%",)
    assert store.list("a\ud7ff") == ("a\ud7ff",)
    assert store.list("zz") == ()


def test_a_prefix_of_the_last_character_has_a_list_too(store: Store) -> None:
    last = "\U0010ffff"
    store.put(last + "x", 1)
    store.put("a" + last, 2)
    store.put("b", 3)
    assert store.list(last) == (last + "x",)
    assert store.list("a" + last) == ("a" + last,)


def test_entries_carry_values_versions_and_times(store: Store) -> None:
    written = store.put("k", [1], ttl=60)
    (entry,) = store.entries("k")
    assert (entry.key, entry.value, entry.version) == ("k", [1], written.version)
    assert entry.expires_at == written.expires_at
    assert written.expires_at is not None
    assert (written.expires_at - entry.created_at).total_seconds() == pytest.approx(60, abs=0.1)


def test_an_entry_keeps_its_time_of_creation_when_overwritten(store: Store) -> None:
    store.put("k", 1)
    (before,) = store.entries()
    store.put("k", 2)
    (after,) = store.entries()
    assert after.created_at == before.created_at


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
def test_a_limit_that_is_none_is_refused(store: Store, limit: Any) -> None:
    with pytest.raises(BadKey, match="limit"):
        store.list(limit=limit)


def test_a_refused_value_leaves_the_stored_one(store: Store) -> None:
    store.put("k", 1)
    for write in (store.put, store.put_if_absent):
        with pytest.raises(NotJson) as refused:
            write("k", {"a": [0, float("nan")]})
        assert refused.value.path == "$.a[1]"
    assert store.get("k") == 1


def test_a_value_over_its_cap_is_refused_with_size_and_cap(opens: Opens) -> None:
    store = opens()
    fits = "x" * (MAX_USER_BYTES - 2)
    store.put("k", fits)
    with pytest.raises(TooLarge) as refused:
        store.put("k", fits + "x")
    assert (refused.value.size, refused.value.limit) == (MAX_USER_BYTES + 1, MAX_USER_BYTES)
    assert store.get("k") == fits
    with pytest.raises(TooLarge):
        store.put("k", "é" * (MAX_USER_BYTES // 2))
    approvals = opens(kinds=("approval:",))
    approvals.put("approval:k", "x" * (MAX_APPROVAL_BYTES - 2))
    with pytest.raises(TooLarge):
        approvals.put("approval:k", "x" * MAX_APPROVAL_BYTES)
