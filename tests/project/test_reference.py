"""The page of settings says what the code says."""

from __future__ import annotations

from kampong.reference import PAGE, page
from statestore.conf import table


def test_the_page_of_settings_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: run `make format`"


def test_every_setting_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for row in table():
        assert f"| `{row.name}` |" in text
        assert row.help.replace("|", " ") in text
