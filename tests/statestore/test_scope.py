"""Entries never cross workflow, workspace or kind (ST-3, design 4)."""

from __future__ import annotations

from typing import Any

import pytest

from statestore.entries import ABSENT, Store
from statestore.errors import BadKey, ReservedKind
from statestore.keys import MAX_KEY_BYTES, RESERVED_KINDS
from tests.statestore.conftest import Opens

TOO_LONG, TOO_WIDE = "k" * (MAX_KEY_BYTES + 1), "é" * (MAX_KEY_BYTES // 2 + 1)


def test_the_same_key_in_two_workflows_or_workspaces_is_two_entries(opens: Opens) -> None:
    here, beside, elsewhere = opens(), opens(workflow="clerk"), opens(workspace="other")
    here.put("k", "here")
    for stranger in (beside, elsewhere):
        assert stranger.get("k", ABSENT) is ABSENT
        assert stranger.list() == ()
        assert not stranger.delete("k")
        assert stranger.put_if_absent("k", "mine")
    assert here.get("k") == "here"


@pytest.mark.parametrize("kind", RESERVED_KINDS)
def test_an_author_reaches_no_reserved_kind(opens: Opens, kind: str) -> None:
    author, service = opens(), opens(kinds=(kind,))
    service.put(f"{kind}k", "kept")
    key: Any = f"{kind}k"
    for act in (
        author.get, author.versioned, author.exists, author.delete, author.claim, author.take_expired, author.list,
        author.entries, lambda key: author.put(key, 1), lambda key: author.put_if_absent(key, 1),
        lambda key: author.bump(key, 1), lambda key: author.replace(key, 1, 1),
    ):  # fmt: skip
        with pytest.raises(ReservedKind) as refused:
            act(key)
        assert refused.value.kind == kind
    with pytest.raises(ReservedKind):
        author.put(kind, 1)
    assert service.list(kind) == (f"{kind}k",)


def test_an_authors_list_leaves_out_reserved_kinds_that_lie_in_its_range(opens: Opens) -> None:
    author = opens()
    for kind in RESERVED_KINDS:
        opens(kinds=(kind,)).put(f"{kind}k", 1)
    for key in ("app", "approval", "approval;", "zoo", "lock"):
        author.put(key, 1)
    assert author.list() == ("app", "approval", "approval;", "lock", "zoo")
    assert author.list("app") == ("app", "approval", "approval;")
    assert [entry.key for entry in author.entries("lock")] == ["lock"]


def test_a_service_reaches_only_the_kinds_it_opened(opens: Opens) -> None:
    service = opens(kinds=("lock:", "once:"))
    service.put("lock:a", 1)
    service.put("once:a", 2)
    assert service.list("lock:") == ("lock:a",)
    for key in ("a", "approval:a", "lock", "l"):
        with pytest.raises(ReservedKind):
            service.put(key, 1)
    for prefix in ("", "l", "approval:"):
        with pytest.raises(ReservedKind):
            service.list(prefix)
    with pytest.raises(BadKey, match="no such kind"):
        opens(kinds=("locks:",))


@pytest.mark.parametrize(
    "key", ["", "a\0b", "a\ud800", 3, None, b"k", TOO_LONG, TOO_WIDE], ids=lambda bad: ascii(bad)[:12]
)
def test_a_bad_key_is_refused(store: Store, key: Any) -> None:
    with pytest.raises(BadKey):
        store.put(key, 1)
    with pytest.raises(BadKey):
        store.get(key)


def test_a_key_of_the_greatest_length_is_kept_whatever_its_kind(opens: Opens) -> None:
    longest = "é" * (MAX_KEY_BYTES // 2)
    opens().put(longest, 1)
    assert opens().list() == (longest,)
    for kind in RESERVED_KINDS:
        service = opens(kinds=(kind,))
        service.put(kind + longest, 1)
        assert service.list(kind) == (kind + longest,)
        with pytest.raises(BadKey, match="bytes"):
            service.put(kind + longest + "x", 1)
        with pytest.raises(BadKey, match="empty"):
            service.put(kind, 1)


@pytest.mark.parametrize("bad", ["", "x" * 201, "a\0", "\udfff", 7], ids=lambda bad: ascii(bad)[:12])
def test_a_bad_scope_is_refused(opens: Opens, bad: Any) -> None:
    with pytest.raises(BadKey):
        opens(workflow=bad)
    with pytest.raises(BadKey):
        opens(workspace=bad)


def test_keys_that_look_alike_are_different(store: Store) -> None:
    for key in ("k", "K", "k ", " k", "é", "e\u0301", "Approval:k"):
        assert store.put_if_absent(key, key)
    assert len(store.list()) == 7
