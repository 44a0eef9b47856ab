"""The click of a slack case: pressed in the message that was posted, signed as the case says."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from tests.conformance.cases import known
from tests.conformance.matching import CaseError, Unmet
from tests.fakes_slack import signed
from tests.fakes_tools import FakeTools, Recorded

POST: Final = "https://slack.com/api/chat.postMessage"
UPDATE: Final = "https://slack.com/api/chat.update"
#: The response addresses of the cases; the fake stands in their place.
HOOKS: Final = "https://hooks.slack.test"
TEAM, MEMBER = "T1", "U1"

CLICK: Final = frozenset({"action_id", "run_id", "user", "response_url", "signature", "omit"})
SIGNATURES: Final = ("valid", "valid-but-4-minutes-old", "valid-for-another-body", "timestamp-not-a-number")


def posted(tools: FakeTools) -> str:
    """The id in the buttons of the message that was posted, when it was."""
    for message in waited(tools, POST):
        for block in message.json()["blocks"]:
            for element in block.get("elements", []):
                if element.get("value"):
                    return str(json.loads(element["value"])["runId"])
    raise Unmet("no message with a button was posted")


def waited(tools: FakeTools, url: str, count: int = 1) -> list[Recorded]:
    """The requests for an address, when there are so many: they are made after the answer that caused them."""
    end = time.monotonic() + 30
    while len(found := [request for request in tools.requests if request.url == url]) < count:
        if time.monotonic() > end:
            raise Unmet(f"{url} was asked {len(found)} times, not {count}")
        time.sleep(0.02)
    return found


def line_of(click: Mapping[str, Any], tools: FakeTools) -> dict[str, Any]:
    """The click as a call.

    The cases know the person by a name alone, which proves nothing; Slack sends an id and a team as well, and those
    are added. `response_url` leads to the fake, under the same address as the API.
    """
    known("slack_click", click, CLICK)
    key = posted(tools) if click["run_id"] == "{posted}" else click["run_id"]
    payload = {
        "type": "block_actions",
        "user": {"id": MEMBER, **click["user"]},
        "team": {"id": TEAM},
        "actions": [{"action_id": click["action_id"], "value": json.dumps({"runId": key})}],
        "response_url": click["response_url"].replace(HOOKS, tools.mounted(HOOKS)),
    }
    for name in click.get("omit", ()):
        del payload[name]
    body = urlencode({"payload": json.dumps(payload)})
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return {"call": "POST /slack/interactions", "raw": body, "headers": kind | _signed(click["signature"], body)}


def _signed(how: str, body: str) -> dict[str, str]:
    match how:
        case "valid":
            return signed(body.encode(), secret="sign-1")
        case "valid-but-4-minutes-old":
            return signed(body.encode(), secret="sign-1", away=-240)
        case "valid-for-another-body":
            return signed(b"payload=%7B%7D", secret="sign-1")
        case "timestamp-not-a-number":
            return signed(body.encode(), secret="sign-1") | {"X-Slack-Request-Timestamp": "yesterday"}
    raise CaseError(f"slack_click.signature: there is none that is called {how}")
