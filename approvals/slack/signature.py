"""Whether Slack sent these bytes, just now (engine semantics 19.1).

Over the raw bytes, in any encoding: the verifier of slack-sdk reads them as UTF-8 first, and fails on times that are no
numbers.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re

from django.http import HttpRequest

from statestore.clock import now
from workflows.errors import NotAuthenticated

logger = logging.getLogger("kampong.slack")

SECRET = "SLACK_SIGNING_SECRET"  # noqa: S105  (the variable's name)
TOLERANCE_SECONDS = 300
_TIME = re.compile(r"[0-9]{1,12}")


def check_signature(request: HttpRequest, raw: bytes) -> None:
    """NotAuthenticated unless the body is signed with our secret and at most five minutes away from now."""
    secret = os.environ.get(SECRET, "")
    if not secret.strip():
        logger.warning("a request to /slack/interactions is refused: %s is not set", SECRET)
        raise NotAuthenticated("Slack is not set up here")
    time = request.headers.get("X-Slack-Request-Timestamp", "")
    given = request.headers.get("X-Slack-Signature", "")
    if not _TIME.fullmatch(time) or not hmac.compare_digest(_signature(secret, time, raw), _raw(given)):
        raise NotAuthenticated("this is not signed by Slack for this site")
    away = int(time) - int(now().timestamp())
    if abs(away) > TOLERANCE_SECONDS:
        logger.warning("a request of Slack is refused: its time is %s s away from this machine's clock", away)
        raise NotAuthenticated("this was signed more than five minutes away from now")


def _signature(secret: str, time: str, raw: bytes) -> bytes:
    signed = b"v0:" + time.encode() + b":" + raw
    return b"v0=" + hmac.new(_raw(secret), signed, hashlib.sha256).hexdigest().encode()


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
