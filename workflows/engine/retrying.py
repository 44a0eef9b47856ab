"""Whether a failed attempt of an HTTP tool's call is made again, and after which wait (engine semantics 14.6).

Rules only: who waits, and where that is remembered, is the driver's business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias

from workflows.engine.effects import HttpCall, ToolFailed

BASE_MS: Final = 500
MAX_DELAY_MS: Final = 30_000
#: No wait is longer, whatever a file or a server says: a year from now is still a time that every database can hold.
LONGEST_SECONDS: Final = 365 * 24 * 3600.0

#: Repeating these does no harm; a POST or PATCH whose fate is not known may have taken effect.
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
#: Doubled more often than this, any wait is past every limit.
_MOST_DOUBLINGS: Final = 64
#: Beyond this a server's number is only large, and shown so.
_COUNTABLE: Final = 1e12


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """No further attempt; `error` is the step's failure message."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Again:
    """One more attempt, after so many seconds."""

    seconds: float


Verdict: TypeAlias = GiveUp | Again


def after(call: HttpCall, failed: ToolFailed, *, attempts: int, now: datetime) -> Verdict:
    """What follows the failure of attempt number `attempts` (from 1)."""
    if call.retry is None or not failed.retryable:
        return GiveUp(error=failed.error)
    if failed.failure != "rate_limit" and call.method not in _REPEATABLE:
        return GiveUp(error=failed.error)
    if attempts > call.retry["max"]:
        return GiveUp(error=f"{_sentence(failed.error)} Gave up after {attempts} attempts.")
    limit = _limit(call.retry)
    asked = asked_for(failed.retry_after, now)
    if asked is not None and asked > limit:
        return GiveUp(error=f"{_sentence(failed.error)} {_too_long(asked, limit)}")
    return Again(seconds=min(max(_backoff(call.retry, attempts), asked or 0.0), limit, LONGEST_SECONDS))


def asked_for(header: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, 0 for a time that is past; None for one that says nothing."""
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _backoff(retry: Any, attempts: int) -> float:
    base = _seconds(retry.get("base_ms") or BASE_MS)
    if retry.get("backoff") == "fixed":
        return base
    return base * float(2 ** min(attempts - 1, _MOST_DOUBLINGS))


def _limit(retry: Any) -> float:
    return _seconds(retry.get("max_delay_ms") or MAX_DELAY_MS)


def _seconds(milliseconds: int) -> float:
    """A file may hold any whole number; past a year nothing depends on which."""
    return min(milliseconds, int(LONGEST_SECONDS) * 1000) / 1000


def _sentence(error: str) -> str:
    """With its full stop: the reason that a failure rule found in an answer may have none."""
    return error if error.endswith((".", "!", "?")) else f"{error}."


def _too_long(asked: float, limit: float) -> str:
    return (
        f"The server asked to wait {_shown(asked)} seconds (Retry-After); the limit is {_shown(limit)} seconds"
        " (max_delay_ms), so it was not retried."
    )


def _shown(seconds: float) -> str:
    return f"{round(seconds, 3):.15g}" if seconds < _COUNTABLE else f"more than {_COUNTABLE:.0f}"
