"""Eight ways to press: each gets ready, waits for the signal, decides, and says what it was told."""

from __future__ import annotations

import html
import json
import random
import re
import time
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
from django.contrib.auth.models import User

from approvals.actors import actor_for_user
from approvals.models import ApprovalRequest
from approvals.signedlinks import token_for
from approvals.slack_links import account, link
from tests.commanding import Terminal
from tests.fakes_slack import FORM_TYPE, HOOK, TEAM, FakeSlack, form, signed

_SENTENCE = re.compile(r"(approved|rejected|expired|cancelled) by (\S+) on \d{4}-\d\d-\d\d at \d\d:\d\d UTC")
#: A terminal is nearer to the database than a browser. This head start lets every surface win some rounds.
_HEAD_START = 0.3
_HIDDEN = re.compile(r'name="(csrfmiddlewaretoken|digest)" value="([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one caller asked for and was told: it won, or the outcome and who won."""

    surface: str
    who: str
    asked: str
    won: bool
    outcome: str = ""
    by: str = ""
    code: str = ""


class Caller(Protocol):
    """Somebody who is about to press."""

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        """Everything that can be done before the signal."""

    def press(self) -> Told:
        """Decide now."""


def verdict(approved: bool) -> str:
    return "approved" if approved else "rejected"


class OverRest:
    """`POST /approvals/<key>/approve` with a token."""

    def __init__(self, client: httpx2.Client, user: User) -> None:
        self._client, self._who = client, user.username

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        # The connection is open before the signal.
        shown = self._client.get(f"/approvals/{request.key}")
        assert shown.status_code == 200, shown.text
        self._path = f"/approvals/{request.key}/approve?wait=0"
        self._body: dict[str, Any] = {"approved": approved, "reason": self._who, "digest": shown.json()["digest"]}

    def press(self) -> Told:
        answer = self._client.post(self._path, json=self._body)
        body = answer.json()
        facts = {"surface": "api", "who": self._who, "asked": verdict(self._body["approved"])}
        if answer.status_code == 200:
            return Told(won=True, **facts)
        assert (answer.status_code, body["code"]) in {(409, "already_resolved"), (404, "approval_not_found")}, body
        decision = body["decision"]
        assert decision["at"].endswith("Z"), decision
        return Told(won=False, outcome=decision["outcome"], by=decision["by"], code=body["code"], **facts)


class InTheAdmin:
    """The form of the decision page, in a signed-in browser."""

    def __init__(self, client: httpx2.Client, user: User) -> None:
        self._client, self._who = client, user.username

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        self._path = f"/admin/approvals/approvalrequest/{request.pk}/decide/"
        page = self._client.get(self._path)
        assert page.status_code == 200, page.text
        self._form = dict(_HIDDEN.findall(page.text))
        assert set(self._form) == {"csrfmiddlewaretoken", "digest"}, page.text
        self._asked = verdict(approved)
        self._form |= {"verdict": "approve" if approved else "reject", "reason": self._who}

    def press(self) -> Told:
        answer = self._client.post(self._path, data=self._form)
        facts = {"surface": "admin", "who": self._who, "asked": self._asked}
        if answer.status_code == 302:
            return Told(won=True, **facts)
        assert answer.status_code in (404, 409), (answer.status_code, answer.text)
        alert = html.unescape(answer.text.partition('role="alert"')[2].partition("</div>")[0])
        found = _SENTENCE.search(alert)
        assert found, answer.text
        return Told(won=False, outcome=found[1], by=found[2], code=str(answer.status_code), **facts)


class ByALink:
    """The form behind the link of a mail, in a browser in which nobody is signed in."""

    def __init__(self, client: httpx2.Client, user: User) -> None:
        self._client, self._user, self._who = client, user, user.username

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        self._path = f"/approvals/link/{token_for(request, self._user)}"
        page = self._client.get(self._path)
        assert page.status_code == 200, page.text
        self._form = dict(_HIDDEN.findall(page.text))
        assert set(self._form) == {"csrfmiddlewaretoken", "digest"}, page.text
        self._asked = verdict(approved)
        self._form |= {"verdict": "approve" if approved else "reject", "reason": self._who, "confirm": "yes"}

    def press(self) -> Told:
        answer = self._client.post(self._path, data=self._form)
        facts = {"surface": "link", "who": self._who, "asked": self._asked}
        if answer.status_code == 302:
            return Told(won=True, **facts)
        assert answer.status_code in (404, 409), (answer.status_code, answer.text)
        found = _SENTENCE.search(html.unescape(answer.text.partition('role="alert"')[2].partition("</div>")[0]))
        assert found, answer.text
        return Told(won=False, outcome=found[1], by=found[2], code=str(answer.status_code), **facts)


class InSlack:
    """A signed press of a button; what comes of it is read where the answer to the click is posted."""

    def __init__(self, served: str, slack: FakeSlack, user: User) -> None:
        self._url, self._slack, self._who = f"{served}/slack/interactions", slack, user.username
        self._id = f"U{user.pk}"
        link(account(TEAM, self._id, self._who), user, actor=actor_for_user(user, "admin"))

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        self._asked = verdict(approved)
        self._hook = f"/{request.key}/{self._who}"
        action = {"action_id": "kampong_approve" if approved else "kampong_reject"}
        action |= {"value": json.dumps({"runId": str(request.key)}), "block_id": f"kampong:{request.digest}"}
        user = {"id": self._id, "username": self._who}
        payload = {"user": user, "team": {"id": TEAM}, "response_url": self._slack.hook + self._hook}
        self._body = form(payload | {"actions": [action]})

    def press(self) -> Told:
        headers = signed(self._body) | {"Content-Type": FORM_TYPE}
        answer = httpx2.post(self._url, content=self._body, headers=headers, trust_env=False, timeout=30)
        assert (answer.status_code, answer.content) == (200, b""), answer.text
        facts = {"surface": "slack", "who": self._who, "asked": self._asked}
        said = self._first_said()
        found = re.search(_SENTENCE.pattern, said["text"], re.IGNORECASE)
        assert found, said
        outcome, by = found[1].lower(), found[2]
        if said["replace_original"]:
            assert (outcome, by) == (self._asked, self._who), said
            return Told(won=True, **facts)
        return Told(won=False, outcome=outcome, by=by, code="too late", **facts)

    def _first_said(self) -> dict[str, Any]:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for request in list(self._slack.requests):
                if request.url == HOOK + self._hook:
                    said: dict[str, Any] = request.json()
                    return said
            time.sleep(0.01)
        raise AssertionError("the click got no answer that could be seen")


class AtATerminal:
    """`approvals approve KEY` in a terminal that is ready; `as_json` prints the one object."""

    def __init__(self, terminal: Terminal, user: User, *, as_json: bool) -> None:
        self._terminal, self._who, self._as_json = terminal, user.username, as_json

    def get_ready(self, request: ApprovalRequest, approved: bool) -> None:
        self._asked = verdict(approved)
        words = ["approvals", "approve" if approved else "reject", str(request.key), "--as", self._who]
        self._terminal.type(*words, "--reason", self._who, *(["--json"] if self._as_json else []))

    def press(self) -> Told:
        time.sleep(random.uniform(0, _HEAD_START))
        said = self._terminal.enter()
        facts = {"surface": "cli", "who": self._who, "asked": self._asked}
        if said.code == 0:
            return Told(won=True, **facts)
        assert said.code == 2, said
        if self._as_json:
            body = json.loads(said.out)
            decision = body["decision"]
            return Told(won=False, outcome=decision["outcome"], by=decision["by"], code=body["code"], **facts)
        found = _SENTENCE.search(said.err)
        assert found, said
        return Told(won=False, outcome=found[1], by=found[2], code="2", **facts)
