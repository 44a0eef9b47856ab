"""The page of settings says what the code says."""

from __future__ import annotations

import re

from kampong.reference import PAGE, page
from statestore.conf import table
from tests.conftest import ROOT


def test_the_page_of_settings_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: run `make format`"


def test_every_setting_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for row in table():
        assert f"| `{row.name}` |" in text
        assert row.help.replace("|", " ") in text


def test_every_check_that_an_app_can_report_stands_on_the_page() -> None:
    told = set(re.findall(r"^\| `(\w+\.[EW]\d{3})` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    known = {
        f"{path.parent.name}.{code}"
        for path in ROOT.glob("*/checks.py")
        for code in re.findall(r"\b[EW]\d{3}\b", path.read_text(encoding="utf-8"))
    }
    assert told == known
