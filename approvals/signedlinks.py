"""Links that decide as one person: signed, for one request, until its end, sent to that person's own address.

A link is as good as the mailbox it went to, so it dies when the person's address changes. It carries no right of its
own: what it may do is asked of the policy when it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from approvals.models import ApprovalRequest
from statestore.clock import now

_SALT = "kampong.approvals.link"
_PURPOSE = "decide"
#: So long after its request's end a link still tells what became of it: whoever comes too late is told so.
TELLS_SECONDS = 30 * 24 * 3600


class BadLink(Exception):
    """Wrong, altered, too old, or not this person's any more; nobody is told which of them."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What a good link leads to. Whether the user is active and may see it is the reader's to ask."""

    request: ApprovalRequest
    user: AbstractUser


def token_for(request: ApprovalRequest, user: AbstractUser) -> str:
    """The signed part of this user's link to this request; for a while after its end it says what became of it."""
    content = {
        "for": _PURPOSE,
        "key": request.key.hex,
        "user": user.pk,
        "mailbox": _mark(user),
        "until": int(request.expires_at.timestamp()),
    }
    return signing.Signer(salt=_SALT).sign_object(content)


def opened(token: str) -> Opened:
    """The request and the user of a token. Raises BadLink."""
    try:
        content: dict[str, Any] = signing.Signer(salt=_SALT).unsign_object(token)
    except (signing.BadSignature, ValueError) as error:
        raise BadLink from error
    if content["for"] != _PURPOSE or content["until"] + TELLS_SECONDS <= now().timestamp():
        raise BadLink
    request = ApprovalRequest.objects.filter(key=content["key"]).select_related("run").first()
    user: Any = get_user_model().objects.filter(pk=content["user"]).first()
    if request is None or user is None or not constant_time_compare(_mark(user), content["mailbox"]):
        raise BadLink
    return Opened(request=request, user=user)


def _mark(user: AbstractUser) -> str:
    """The address without telling it: a token can be read by whoever sees the link."""
    return salted_hmac(f"{_SALT}.mailbox", f"{user.pk}:{user.email.casefold()}").hexdigest()[:16]
