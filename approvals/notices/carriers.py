"""What carries a notice out of the house: one carrier a kind of channel, registered by the app when it starts."""

from __future__ import annotations

from typing import Protocol

from approvals.models import Notice


class Carrier(Protocol):
    """Sends one notice and answers what the service calls the message, as JSON ("" where it has no name).

    Called with no transaction open and no lock held; what is said is made now, from what is true now. Raises
    Undeliverable, TryLater or OutOfDate, and nothing else that it can foresee.
    """

    def send(self, notice: Notice) -> str: ...


class NotSent(Exception):
    """The notice did not leave; the text says why, to an operator, and holds no secret."""


class Undeliverable(NotSent):
    """It will never leave as it is: a wrong address, a token that is unset or refused. An operator can try again."""


class TryLater(NotSent):
    """Not now: the service is away or busy. `after_seconds` is how long it asks us to wait, None where it did not.

    `whole_channel`: what else waits for the same address would be refused as well. `counts` False: nothing was tried,
    so that this is no attempt; it is due again after `after_seconds`.
    """

    def __init__(
        self, text: str, after_seconds: float | None = None, *, whole_channel: bool = False, counts: bool = True
    ) -> None:
        super().__init__(text)
        self.after_seconds = after_seconds
        self.whole_channel = whole_channel
        self.counts = counts


class OutOfDate(NotSent):
    """There is nothing to say any more; the notice is dropped."""


_carriers: dict[str, Carrier] = {}


def register(channel: str, carrier: Carrier) -> None:
    """Let this carrier send what goes to a kind of channel (`slack`, `email`); registering it again replaces it."""
    _carriers[channel] = carrier


def carrier_of(channel: str) -> Carrier | None:
    """Who carries notices to this kind of channel; None where nobody does."""
    return _carriers.get(channel)
