"""What the settings say about how long runs and decisions are kept.

Read with the settings, so nothing heavy is imported here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from statestore.conf import value

FOREVER: Final = "forever"
#: By the status of a chain's newest run.
SETTINGS: Final[dict[str, str]] = {
    "completed": "KAMPONG_KEEP_COMPLETED",
    "rejected": "KAMPONG_KEEP_REJECTED",
    "failed": "KAMPONG_KEEP_FAILED",
    "expired": "KAMPONG_KEEP_EXPIRED",
    "cancelled": "KAMPONG_KEEP_CANCELLED",
    "interrupted": "KAMPONG_KEEP_INTERRUPTED",
}
DECISIONS: Final = "KAMPONG_KEEP_DECISIONS"

_AGE = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
#: Longer than any archive asks for, and still a time that every clock and database knows.
_MOST_SECONDS = 100 * 365 * 86_400
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_AN_AGE = "an age above 0 such as 90d (s, m, h, d or w; at most a hundred years)"


@dataclass(frozen=True, kw_only=True)
class Keep:
    """For so many seconds, and so many runs of each agent: what is over either goes. None of both: for ever."""

    seconds: int | None = None
    number: int | None = None

    @property
    def forever(self) -> bool:
        return self.seconds is None and self.number is None


def keep_of(text: str) -> Keep:
    """What a setting says: `forever`, `90d`, `10000` or `90d 10000`. ValueError with what is allowed otherwise."""
    words = text.split()
    if [word.lower() for word in words] == [FOREVER]:
        return Keep()
    ages = [seconds for word in words if (seconds := _age(word)) is not None]
    numbers = [int(word) for word in words if _NUMBER.fullmatch(word) and int(word)]
    if not words or len(ages) > 1 or len(numbers) > 1 or len(ages) + len(numbers) != len(words):
        raise ValueError(
            f"{text!r} is neither {FOREVER!r} nor {_AN_AGE}, nor a number of runs of each agent such as 10000, "
            "nor an age and a number"
        )
    return Keep(seconds=ages[0] if ages else None, number=numbers[0] if numbers else None)


def age_of(text: str) -> Keep:
    """The same for what has no number: `forever` or an age."""
    words = text.split()
    if [word.lower() for word in words] == [FOREVER]:
        return Keep()
    seconds = _age(words[0]) if len(words) == 1 else None
    if seconds is None:
        raise ValueError(f"{text!r} is neither {FOREVER!r} nor {_AN_AGE}")
    return Keep(seconds=seconds)


def _age(word: str) -> int | None:
    found = _AGE.fullmatch(word)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    return seconds if 0 < seconds <= _MOST_SECONDS else None


def read_keep(text: str) -> str:
    """The text of a setting, once it can be read."""
    keep_of(text)
    return text.strip()


def read_age(text: str) -> str:
    """The same for an age."""
    age_of(text)
    return text.strip()


def of_runs() -> dict[str, Keep]:
    """By status, how long finished runs are kept; a status whose runs stay for ever is not among them."""
    kept = {status: keep_of(value(name)) for status, name in SETTINGS.items()}
    return {status: keep for status, keep in kept.items() if not keep.forever}


def of_decisions() -> Keep:
    """How long what was decided on them is kept, after them."""
    return age_of(value(DECISIONS))
