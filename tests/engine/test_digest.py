"""The digest changes exactly with what a decider is shown (design 6)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from workflows.engine.digest import action_digest

SHOWN: dict[str, Any] = {
    "kind": "tool",
    "step": "pay",
    "message": "Pay?",
    "action": {"method": "POST", "body": {"json": {"n": 3, "list": [1, True, None]}}},
    "url_marks": {"HOST": "ab12"},
}


def test_it_names_its_format_and_is_a_sha_256() -> None:
    assert re.fullmatch("1:[0-9a-f]{64}", action_digest(**SHOWN))


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "approval"},
        {"step": "pay2"},
        {"message": "Pay!"},
        {"action": None},
        {"action": {"method": "POST", "body": {"json": {"n": "3", "list": [1, True, None]}}}},
        {"action": {"method": "POST", "body": {"json": {"n": 3, "list": [1, 1, None]}}}},
        {"action": {"method": "POST", "body": {"json": {"n": 3, "list": [True, 1, None]}}}},
        {"url_marks": {"HOST": "cd34"}},
        {"url_marks": {}},
    ],
)
def test_any_change_of_what_is_shown_changes_it(changed: dict[str, Any]) -> None:
    assert action_digest(**{**SHOWN, **changed}) != action_digest(**SHOWN)


def test_the_order_of_keys_and_the_spelling_of_a_number_do_not_change_it() -> None:
    same = {"body": {"json": {"list": [1.0, True, None], "n": 3.0}}, "method": "POST"}
    assert action_digest(**{**SHOWN, "action": same}) == action_digest(**SHOWN)


def test_it_stays_what_it_was_in_earlier_releases() -> None:
    """Stored digests outlive a release: this value may change only together with the format number."""
    digest = action_digest(kind="approval", step="review", message="Ship it?", action=None)
    assert digest == "1:9c29ae66ae0e293aacb083dff857c4e8cc640f847dc1f52ee71f6c5c41ee5fb1"


def test_text_that_cannot_be_encoded_still_has_a_digest() -> None:
    assert action_digest(**{**SHOWN, "message": "\ud800"}) != action_digest(**SHOWN)
