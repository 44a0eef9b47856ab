"""The log in both forms: what belongs to a line stands on it, and neither form says what no log may say."""

from __future__ import annotations

import logging
import re
import sys
import uuid
from datetime import UTC, datetime

import pytest

from kampong import logs
from kampong.logs import Json, Text
from statestore.keys import shown
from tests.conftest import ROOT
from tests.metering import logged
from workflows import bound

KEY = "7c1d5b0e-6f0a-4a53-9d0c-1f2e3d4c5b6a"
log = logging.getLogger("kampong.testing")


def test_a_line_of_json_has_its_time_in_utc_and_every_id_that_is_bound() -> None:
    with logged(log.name) as lines:
        with bound.bound(request="r-1"), bound.bound(run="u-1", agent="clerk", workspace="default", step="look"):
            bound.rebind(step="pay")
            log.warning("paid %s times", 2)
        log.info("alone")
    first, second = lines
    moment = datetime.strptime(first.pop("time"), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
    ids = {"request": "r-1", "run": "u-1", "agent": "clerk", "workspace": "default", "step": "pay"}
    assert first == {"level": "WARNING", "logger": "kampong.testing", "message": "paid 2 times", **ids}
    assert set(second) == set(logs.FIELDS), "what was bound in a block does not outlive it"


@pytest.mark.parametrize("message", ['a "quoted"\nline\r\n\x1b[31m', "snow ☃ \ud800 \u2028"])
def test_no_text_breaks_a_line_of_json(message: str) -> None:
    with logged(log.name) as lines:
        log.warning(message)
    assert [line["message"] for line in lines] == [message]


def test_an_exception_is_one_field_however_it_came_into_the_line() -> None:
    with logged(log.name) as lines:
        try:
            raise ValueError("it broke")
        except ValueError:
            log.exception("a turn failed")
        log.error("a run failed\nTraceback (most recent call last):\n  File x\nKeyError: 1")
    for line, message in zip(lines, ("a turn failed", "a run failed"), strict=True):
        assert line["message"] == message
        assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert lines[0]["exception"].endswith("ValueError: it broke")


def test_text_is_as_it_always_was_with_run_and_request_at_the_end_of_its_line() -> None:
    with logged(log.name, Text()) as lines:
        log.warning("alone")
        with bound.bound(request="r-1", run="u-1", step="pay"):
            try:
                raise ValueError("it broke")
            except ValueError:
                log.exception("a turn failed")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:,]+ WARNING kampong\.testing alone", lines[0])
    assert lines[1].endswith(" ERROR kampong.testing a turn failed [run=u-1 request=r-1]")
    assert lines[-1] == "  ValueError: it broke"


def test_no_text_from_outside_makes_a_line_of_its_own_or_moves_the_cursor() -> None:
    forged = "gone\n2026-01-01 00:00:00,000 ERROR kampong.audit forged\r\x1b[2J\u2028\x85\x9b31mred ☃"
    with logged(log.name, Text()) as lines:
        log.warning("the service said: %s", forged)
        try:
            raise ValueError(forged)
        except ValueError:
            log.exception("a turn failed")
    assert [line[:10] for line in lines if not line.startswith("  ")] == [lines[0][:10]] * 2
    assert "  2026-01-01 00:00:00,000 ERROR kampong.audit forged\\u000d\\u001b[2J\\u2028\\u0085\\u009b31mred ☃" in lines


def test_a_key_is_bound_as_its_fingerprint_and_no_other_id_can_be() -> None:
    with logged(log.name) as lines, bound.bound(key=uuid.UUID(KEY)):
        log.warning("decided")
    assert lines[0]["key"] == shown(f"approval:{KEY}")
    with pytest.raises(TypeError, match="no line of the log has the id payload"), bound.bound(payload="x"):
        pass


@pytest.mark.parametrize("form", [Json, Text])
def test_neither_form_tells_a_link_a_key_or_the_traceback_of_a_refused_request(form: type[logging.Formatter]) -> None:
    said = "Forbidden: /approvals/link/canary-link"
    with logged("django.security", form()) as lines:
        try:
            raise ValueError(f"in /approvals/{KEY}/approve")
        except ValueError:
            refused = sys.exc_info()
            logging.getLogger("django.security.csrf").error(said, exc_info=refused)
    with logged(log.name, form()) as more:
        log.error("at /approvals/%s/approve and /approvals/%s", KEY, KEY.replace("-", "").upper(), exc_info=refused)
    whole = "\n".join(lines + more)
    assert "canary" not in whole
    assert KEY not in whole
    assert KEY.replace("-", "") not in whole.lower()
    assert "Traceback" not in "\n".join(lines)
    assert "WARNING" in lines[0]
    assert whole.count(shown(f"approval:{KEY}")) == 3


def test_every_field_of_the_log_is_explained_and_no_other() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("## The log\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \| \S", section, re.MULTILINE)
    assert told == [*logs.FIELDS, "exception", *bound.FIELDS]
