from __future__ import annotations

import re

from django.test import override_settings

from workflows.adapters.environment import Environment

ENVIRON = {"TOKEN": "s3cret-value", "EMPTY": "", "OTHER": "other"}
NAMES = ("TOKEN", "EMPTY", "MISSING", "OTHER")


def test_an_empty_variable_has_no_value_like_an_unset_one() -> None:
    assert Environment(ENVIRON).read(NAMES) == {
        "TOKEN": "s3cret-value",
        "EMPTY": None,
        "MISSING": None,
        "OTHER": "other",
    }


def test_a_fingerprint_notices_a_changed_value_and_tells_nothing() -> None:
    marks = Environment(ENVIRON, key="k").fingerprint(NAMES)
    assert re.fullmatch("[0-9a-f]{64}", marks["TOKEN"])
    assert (marks["EMPTY"], marks["MISSING"]) == ("unset", "unset")
    assert len({marks["TOKEN"], marks["OTHER"]}) == 2
    assert Environment({**ENVIRON, "TOKEN": "moved"}, key="k").fingerprint(["TOKEN"])["TOKEN"] != marks["TOKEN"]
    assert Environment(ENVIRON, key="k").fingerprint(NAMES) == marks


def test_fingerprints_of_two_installations_differ() -> None:
    first = Environment(ENVIRON, key="one").fingerprint(["TOKEN"])
    assert Environment(ENVIRON, key="two").fingerprint(["TOKEN"]) != first


def test_without_a_key_it_uses_the_one_of_the_installation() -> None:
    with override_settings(SECRET_KEY="one"):
        first = Environment(ENVIRON).fingerprint(["TOKEN"])
    assert first == Environment(ENVIRON, key="one").fingerprint(["TOKEN"])
