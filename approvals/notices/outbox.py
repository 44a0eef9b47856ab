"""The outbox: notices are written in the transaction of what they tell, and leave after its commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, TypeAlias

from approvals.models import ApprovalRequest, Notice
from approvals.policy import policy_of
from statestore.clock import now
from workflows import registry
from workflows.engine import jsontext
from workflows.errors import SpecBroken
from workflows.models import SpecVersion
from workflows.spec.policy_model import EmailChannel, SlackChannel

#: `opened`, `reminder`, `escalated`, `handed`, `glass_broken`: somebody is told. `changed`, `closed`: what was posted
#: before is brought up to date.
About: TypeAlias = Literal["opened", "reminder", "escalated", "handed", "glass_broken", "changed", "closed"]
#: They change a message that was posted; a mail cannot be changed.
UPDATES = ("changed", "closed")

Channel: TypeAlias = SlackChannel | EmailChannel


def tell(request: ApprovalRequest, about: About, *, users: Iterable[int] = (), **facts: Any) -> None:
    """Write one notice for each place that is to be told, inside the caller's transaction.

    The places are the channels of the request; `users` are told by mail besides, each by themselves. Where there is
    none, nothing is asked of the database about a request that was read with its run. `facts` are kept as JSON: texts
    for people, no secrets, no keys.
    """
    places = _places_of(request, about)
    places += [("email", jsontext.canonical({"user": user})) for user in users]
    if about in UPDATES and request.run.rebinds:
        # Cards are also where the spec before announced it.
        places += [(kind, address) for kind, address in _asked(request) if kind == "slack"]
    if places:
        _write(request, about, places, request.revision if about == "opened" else _revision(request), facts)


def ask_elsewhere(request: ApprovalRequest) -> None:
    """After a rebind: the places that the spec before did not name are asked as well."""
    asked = _asked(request)
    if places := [place for place in _places_of(request, "opened") if place not in asked]:
        _write(request, "opened", places, _revision(request), {})


def _places_of(request: ApprovalRequest, about: About) -> list[tuple[str, str]]:
    places = (place for channel in channels_of(request) for place in _places(channel, about))
    return [(kind, jsontext.canonical(address)) for kind, address in places]


def _asked(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Where it was announced so far."""
    opened = Notice.objects.filter(request=request, about="opened").order_by("id")
    return list(opened.values_list("channel", "address"))


def _write(
    request: ApprovalRequest, about: About, places: list[tuple[str, str]], revision: int, facts: dict[str, Any]
) -> None:
    """One row a place, each once."""
    moment, written = now(), jsontext.dumps(facts)
    Notice.objects.bulk_create(
        _notice(request, about, kind, address, revision=revision, facts=written, moment=moment)
        for kind, address in dict.fromkeys(places)
    )


def channels_of(request: ApprovalRequest) -> tuple[Channel, ...]:
    """Where this request is announced: its policy's `notify`, or else the notifier of the spec it was opened under.

    None where the stored spec is no good: whoever decides must not be kept from it by that.
    """
    named = policy_of(request).notify
    if named is not None:
        return named
    try:
        spec = registry.pinned(request.workspace, request.spec_hash)
    except (SpecBroken, SpecVersion.DoesNotExist):
        return ()
    notifier = spec.agent.approval_notifier
    return () if notifier is None else (SlackChannel(token=notifier.token, channel=notifier.channel),)


def _places(channel: Channel, about: About) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(channel, SlackChannel):
        yield "slack", {"token": channel.token, "channel": channel.channel}
    elif about not in UPDATES:
        yield from (("email", {"to": address}) for address in channel.to)


def _revision(request: ApprovalRequest) -> int:
    """As it is in the database: the act that is told has just counted it up there."""
    return ApprovalRequest.objects.values_list("revision", flat=True).get(pk=request.pk)


def _notice(
    request: ApprovalRequest, about: About, kind: str, address: str, *, revision: int, facts: str, moment: datetime
) -> Notice:
    return Notice(
        workspace=request.workspace,
        request=request,
        channel=kind,
        address=address,
        about=about,
        facts=facts,
        revision=revision,
        due_at=moment,
        created_at=moment,
    )
