"""`Idempotency-Key`: a start that is sent again within a day answers with the run that it started the first time."""

from __future__ import annotations

from rest_framework.request import Request

from workflows.api.authentication import Caller
from workflows.errors import Invalid

MOST = 255


def idempotency_key(request: Request, caller: Caller | None) -> str | None:
    """The key of this request, apart for every user, so that nobody meets another's; None when there is none.

    `caller` None: whoever signs the webhook.
    """
    given = request.headers.get("Idempotency-Key")
    if given is None:
        return None
    if not 1 <= len(given) <= MOST or not given.isprintable():
        message = f"must be 1 to {MOST} printable characters"
        raise Invalid(f"Idempotency-Key: {message}", [{"path": "Idempotency-Key", "message": message}])
    return f"{'signed' if caller is None else caller.user.pk}:{given}"
