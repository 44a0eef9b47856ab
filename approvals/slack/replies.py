"""The visible answer to a click, posted to the address that Slack gave with it, after the acknowledgement.

Such an address is good for half an hour and is a secret of its kind: it is held in memory and neither stored nor
logged. What is posted there is a courtesy; the card itself is kept up to date by the outbox. A process that ends waits
for the answers that are being posted, and drops those that had to wait for them.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from approvals.notices.slack_text import FALLBACK_LIMIT, Block, escaped, section
from statestore.conf import value as setting
from workflows.draining import draining

logger = logging.getLogger("kampong.slack")

TIMEOUT_SECONDS = 5
MOST_WAITING = 200
_HOSTS = (".slack.com", ".slack-gov.com")

_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="slack-reply")
_room = threading.BoundedSemaphore(MOST_WAITING)

Message = dict[str, Any]


def only_you(text: str, *more: Block) -> Message:
    """A message that only whoever pressed sees; the card stays as it is."""
    blocks = [section(text), *more]
    shown = escaped(text, FALLBACK_LIMIT)
    return {"response_type": "ephemeral", "replace_original": False, "text": shown, "blocks": blocks}


def in_place(card: Message) -> Message:
    """The card in place of the one with the button."""
    return {"replace_original": True, **card}


def is_allowed(url: str) -> bool:
    """Whether an answer may be posted there: to Slack, or to what KAMPONG_SLACK_API_URL names in its place.

    The address comes signed by Slack; it is looked at all the same, so that nothing can make this process post
    elsewhere, inside the network least of all.
    """
    try:
        place, own = urlsplit(url), urlsplit(setting("KAMPONG_SLACK_API_URL"))
        port, own_port = place.port, own.port
    except ValueError:
        return False
    if "@" in place.netloc or not place.hostname:
        return False
    if (place.scheme, place.hostname, port) == (own.scheme, own.hostname, own_port):
        return True
    return place.scheme == "https" and port in (None, 443) and f".{place.hostname}".endswith(_HOSTS)


def post_later(url: str, messages: list[Message]) -> None:
    """Post them in order, from a thread of its own pool; a failure is logged once, without the address."""
    if not messages:
        return
    if not is_allowed(url):
        logger.warning("the answer to a click is not posted: the address that came with it is not one of Slack's")
        return
    if not _room.acquire(blocking=False):
        logger.warning("the answer to a click is not posted: too many wait already")
        return
    _pool.submit(_post_all, url, messages, time.monotonic())


def _post_all(url: str, messages: list[Message], asked_at: float) -> None:
    try:
        if draining.is_set() and time.monotonic() - asked_at > TIMEOUT_SECONDS:
            logger.warning("the answer to a click is not posted: it had to wait, and this process ends")
            return
        for message in messages:
            _post(url, message)
    except HTTPError as error:
        logger.warning("the answer to a click could not be posted: HTTP %s", error.code)
        error.close()
    except (OSError, HTTPException, ValueError) as error:
        logger.warning("the answer to a click could not be posted: %s", type(error).__name__)
    finally:
        _room.release()


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Nowhere: what is posted goes to where it was checked to go."""
        return None


_opener = build_opener(_Stay)


def _post(url: str, message: Message) -> None:
    body = json.dumps(message).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310  (the scheme is checked)
    with _opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
        answer.read(1000)
