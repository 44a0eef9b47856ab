"""Which failures are tried again, after which wait, and what the last one says (engine semantics 14.6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.engine.effects import HttpCall, ToolFailed
from workflows.engine.retrying import LONGEST_SECONDS, Again, GiveUp, after, asked_for

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def call(method: str = "GET", **retry: Any) -> HttpCall:
    block = {"max": 3, "backoff": "exponential", "base_ms": 100, "max_delay_ms": 30_000} | retry
    return HttpCall(tool="t", method=method, url="http://t.test/", headers=(), body=None, retry=block)


def broken(**changed: Any) -> ToolFailed:
    fields: dict[str, Any] = {"error": "It broke.", "failure": "http", "retryable": True}
    return ToolFailed(**(fields | changed))


def verdict(given: HttpCall, failed: ToolFailed, attempts: int = 1) -> Again | GiveUp:
    return after(given, failed, attempts=attempts, now=NOW)


def test_without_a_retry_block_there_is_one_attempt_and_the_message_stays() -> None:
    single = HttpCall(tool="t", method="GET", url="http://t.test/", headers=(), body=None)
    assert verdict(single, broken()) == GiveUp(error="It broke.")


@pytest.mark.parametrize("failure", ["auth", "http", "failure_when", "build"])
def test_what_is_not_retryable_is_final_as_it_is(failure: Any) -> None:
    assert verdict(call(), broken(failure=failure, retryable=False)) == GiveUp(error="It broke.")


@pytest.mark.parametrize("failure", ["http", "timeout", "failure_when"])
def test_a_post_or_patch_is_repeated_for_a_rate_limit_only(failure: Any) -> None:
    for method in ("POST", "PATCH"):
        assert verdict(call(method), broken(failure=failure)) == GiveUp(error="It broke.")
        assert verdict(call(method), broken(failure="rate_limit")) == Again(seconds=0.1)
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert verdict(call(method), broken(failure=failure)) == Again(seconds=0.1)


def test_when_all_attempts_are_made_the_message_ends_with_their_number() -> None:
    assert verdict(call(max=2), broken(), attempts=2) == Again(seconds=0.2)
    assert verdict(call(max=2), broken(), attempts=3) == GiveUp(error="It broke. Gave up after 3 attempts.")
    assert verdict(call(max=2), broken(), attempts=99) == GiveUp(error="It broke. Gave up after 99 attempts.")


def test_a_reason_without_a_full_stop_gets_one() -> None:
    reason = broken(error="It said: try later")
    assert verdict(call(max=2), reason, attempts=3) == GiveUp(error="It said: try later. Gave up after 3 attempts.")


def test_the_wait_doubles_up_to_the_limit_or_stays() -> None:
    waits = [verdict(call(max=9, max_delay_ms=1000), broken(), attempts=n) for n in range(1, 7)]
    assert waits == [Again(seconds=seconds) for seconds in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0)]
    assert verdict(call(backoff="fixed"), broken(), attempts=3) == Again(seconds=0.1)
    assert verdict(call(base_ms=5000, max_delay_ms=1000, backoff="fixed"), broken()) == Again(seconds=1.0)


def test_defaults_stand_in_for_what_the_block_leaves_out() -> None:
    given = HttpCall(tool="t", method="GET", url="http://t.test/", headers=(), body=None, retry={"max": 20})
    assert verdict(given, broken()) == Again(seconds=0.5)
    assert verdict(given, broken(), attempts=20) == Again(seconds=30.0)


def test_the_server_s_wait_counts_where_it_is_longer() -> None:
    for header, seconds in (("5", 5.0), ("0", 0.1), ("-5", 0.1), ("soon", 0.1), ("", 0.1)):
        assert verdict(call(), broken(retry_after=header)) == Again(seconds=seconds)
    for ahead, seconds in ((7, 7.0), (-7, 0.1)):
        date = format_datetime(NOW + timedelta(seconds=ahead), usegmt=True)
        assert verdict(call(), broken(retry_after=date)) == Again(seconds=seconds)


def test_a_server_that_asks_for_more_than_the_limit_ends_it_at_once_with_both_numbers() -> None:
    assert verdict(call(max_delay_ms=5000), broken(retry_after="5")) == Again(seconds=5.0)
    for header, said in (
        ("120", "120 seconds"),
        ("5.5", "5.5 seconds"),
        ("9" * 4000, "more than 1000000000000 seconds"),
    ):
        given = verdict(call(max_delay_ms=5000), broken(retry_after=header))
        assert isinstance(given, GiveUp)
        assert said in given.error
        assert "limit is 5 seconds" in given.error
        assert given.error.startswith("It broke. ")
        assert given.error.endswith("not retried.")
    date = format_datetime(NOW + timedelta(days=1), usegmt=True)
    given = verdict(call(), broken(retry_after=date))
    assert isinstance(given, GiveUp)
    assert "86400 seconds" in given.error
    # The last attempt's failure is not about the wait.
    last = verdict(call(max=1), broken(retry_after="999"), attempts=2)
    assert last == GiveUp(error="It broke. Gave up after 2 attempts.")


@pytest.mark.parametrize(
    "text", ["Thu, 01 Jan 2026 12:00:37 GMT", "Thursday, 01-Jan-26 12:00:37 GMT", "Thu Jan  1 12:00:37 2026", " 37 "]
)
def test_every_form_of_a_date_is_read(text: str) -> None:
    assert asked_for(text, NOW) == 37


@given(st.one_of(st.text(), st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ ([+-]\d+|GMT)")))
def test_no_header_is_too_odd(text: str) -> None:
    asked = asked_for(text, NOW)
    assert asked is None or asked >= 0


@given(
    st.integers(1, 10**40),
    st.integers(1, 10**40),
    st.integers(1, 10**40),
    st.integers(1, 10**40),
    st.sampled_from(["fixed", "exponential"]),
    st.one_of(st.none(), st.integers(0, 10**40).map(str)),
)
def test_a_wait_is_never_longer_than_its_limit_or_a_year(
    attempts: int, most: int, base: int, limit: int, backoff: str, header: str | None
) -> None:
    given = call(max=most, base_ms=base, max_delay_ms=limit, backoff=backoff)
    result = verdict(given, broken(retry_after=header), attempts=attempts)
    if isinstance(result, Again):
        assert attempts <= most
        assert 0 < result.seconds <= min(limit / 1000, LONGEST_SECONDS)
