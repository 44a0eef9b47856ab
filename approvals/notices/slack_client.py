"""One call of Slack's API: bounded, without hidden retries, and with answers that say whether to try again."""

from __future__ import annotations

import logging
import os
import re
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from approvals.notices.carriers import TryLater, Undeliverable
from statestore.conf import value as setting
from workflows.adapters.redacting import Redactor
from workflows.visible import clipped

if TYPE_CHECKING:
    from slack_sdk.errors import SlackApiError

TIMEOUT_SECONDS = 10
#: Errors of Slack that pass by themselves.
_PASSING = frozenset(
    {
        "accesslimited",
        "fatal_error",
        "internal_error",
        "ratelimited",
        "rate_limited",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
    }
)

_CODE = re.compile(r"[a-z0-9_.-]{1,100}")

# The client logs each failure on its own, with what it sent. What failed is told once, by the sender.
_silent = logging.getLogger("kampong.slack_sdk")
_silent.setLevel(logging.CRITICAL + 1)


def token_of(reference: str) -> str:
    """The value of a reference `${NAME}`; Undeliverable, naming the variable, where it is unset or empty."""
    name = reference.removeprefix("${").removesuffix("}")
    token = os.environ.get(name)
    if not token:
        raise Undeliverable(f"the environment variable {name}, which holds Slack's token, is not set in this process")
    return token


def call(token: str, method: str, body: dict[str, Any], *, timeout: int = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Slack's answer. Undeliverable or TryLater, whose texts hold no token."""
    # Only processes that call Slack pay for its client.
    from slack_sdk import WebClient
    from slack_sdk.errors import SlackApiError, SlackClientError

    base = setting("KAMPONG_SLACK_API_URL").rstrip("/") + "/"
    try:
        client = WebClient(token=token, base_url=base, timeout=timeout, retry_handlers=[], logger=_silent)
        answer = client.api_call(method, json=body).data
    except SlackApiError as error:
        raise _refused(error, Redactor([token])) from None
    except (OSError, HTTPException, SlackClientError, ValueError, AttributeError) as error:
        # The client trips over an answer that is no JSON object in more ways than one.
        words = clipped(Redactor([token]).text(str(error) or type(error).__name__), 300)
        raise TryLater(f"Slack could not be asked: {words}", whole_channel=True) from None
    if not isinstance(answer, dict):
        raise TryLater("Slack answered with something that is no JSON object", whole_channel=True)
    return answer


def _refused(error: SlackApiError, redactor: Redactor) -> TryLater | Undeliverable:
    response = error.response
    status = response.status_code
    given = response.data.get("error") if isinstance(response.data, dict) else None
    # The client puts an answer that is no JSON in the place of a code.
    code = redactor.text(given) if isinstance(given, str) and _CODE.fullmatch(given) else ""
    told = code or f"HTTP {status}, with an answer that says nothing"
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return TryLater("Slack is asked too often", _retry_after(response.headers), whole_channel=True)
    if status >= 500 or code in _PASSING or (status == 200 and not code):
        return TryLater(f"Slack is not well: {told}", whole_channel=True)
    return Undeliverable(f"Slack refused it: {told}")


def _retry_after(headers: Any) -> float:
    given = next((text for name, text in dict(headers).items() if name.lower() == "retry-after"), "")
    given = given[0] if isinstance(given, list) and given else given
    return float(given) if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 7 else 30.0
