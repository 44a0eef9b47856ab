"""The page of choices has every open point, and names only what there is."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from workflows.spec.notes import CODES

PAGE = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")


def test_every_open_point_of_the_format_and_of_the_engine_has_one_row() -> None:
    rows = re.findall(r"^\| ([FS]\d+) \|[^|]+\|[^|]+\|$", PAGE, re.MULTILINE)

    assert rows == [f"F{number}" for number in range(1, 15)] + [f"S{number}" for number in range(1, 21)]


def test_every_note_that_the_page_names_exists() -> None:
    named = {
        code for group in re.findall(r"notes? ((?:`\w+`(?:, )?)+)", PAGE) for code in re.findall(r"`(\w+)`", group)
    }

    assert len(named) >= 8
    assert named <= set(CODES)
