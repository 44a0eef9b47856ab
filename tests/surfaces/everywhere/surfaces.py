"""Five ways to decide, told apart by nothing but how one presses and where one reads the answer."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.signedlinks import token_for
from approvals.tokens import create_token
from tests.fakes_slack import Member, everything, text
from tests.surfaces.api.conftest import until
from tests.surfaces.cli.running import command
from tests.surfaces.slack.conftest import Channel, all_answered

DONE = "done"


@dataclass(frozen=True, kw_only=True)
class Press:
    """What a person says: `answers` are those of the form's one field, `amount`, as typed."""

    approved: bool
    reason: str = ""
    amount: str | None = None


class Surface(Protocol):
    """Presses as this user, whatever the page offers, and answers with all the words that the user reads then."""

    name: str
    #: Whether what was shown is proved by a digest without anybody's doing.
    shows: bool

    def meet(self, user: User) -> None:
        """This user is known here."""

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str: ...


class Known:
    """Where a user of ours is a user."""

    def meet(self, user: User) -> None:
        assert user.is_active


def words_of(page: str) -> str:
    """A page without its tags, blanks in one."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def _form(request: ApprovalRequest, press: Press) -> dict[str, str]:
    sent = {"verdict": "approve" if press.approved else "reject", "reason": press.reason, "digest": request.digest}
    return sent if press.amount is None else sent | {"answers.amount": press.amount}


class Admin(Known):
    """The form of the decision page, sent also where the page does not offer it."""

    name, shows = "admin", True

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str:
        client = Client()
        client.force_login(user)
        path = reverse("admin:approvals_approvalrequest_decide", args=[request.pk])
        answer: Any = client.post(path, _form(request, press), follow=True)
        assert answer.status_code < 500
        return words_of(answer.content.decode())


class SignedLink(Known):
    """The page behind the link of a mail."""

    name, shows = "link", True

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str:
        path = reverse("approval-link", args=[token_for(request, user)])
        answer: Any = Client().post(path, _form(request, press) | {"confirm": "yes"}, follow=True)
        assert answer.status_code < 500
        return words_of(answer.content.decode())


class Rest(Known):
    """`POST /approvals/<key>/approve` with the digest that was read."""

    name, shows = "api", True

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str:
        body: dict[str, Any] = {"approved": press.approved, "reason": press.reason, "digest": request.digest}
        if press.amount is not None:
            body["answers"] = {"amount": _number(press.amount)}
        answer = Client().post(
            f"/approvals/{request.key}/approve?wait=0",
            json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {create_token(user, 'everywhere')}"},
        )
        assert answer.status_code < 500
        return answer.content.decode()


class Terminal(Known):
    """`approvals approve` and `reject`."""

    name, shows = "cli", False

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str:
        more = ["--reason", press.reason] if press.reason else []
        if press.amount is not None:
            more += ["--answers", json.dumps({"amount": _number(press.amount)})]
        verb = "approve" if press.approved else "reject"
        said = command("approvals", verb, str(request.key), "--as", user.get_username(), *more)
        assert "Traceback" not in said.err
        return said.out + said.err


class Slack:
    """A button of the card, and its form where one opens."""

    name, shows = "slack", True

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._members: dict[int, Member] = {}

    def meet(self, user: User) -> None:
        if user.pk not in self._members:
            self._members[user.pk] = self._channel.linked(user, f"U{user.pk}")

    def press(self, user: User, request: ApprovalRequest, press: Press) -> str:
        self.meet(user)
        slack, member = self._channel.slack, self._members[user.pk]
        card = next(post for post in slack.posts if str(request.key) in everything(post))
        answered, opened = len(slack.replies), len(slack.views)
        member.press(card, "kampong_approve" if press.approved else "kampong_reject")
        if len(slack.views) > opened:
            typed = {"reason": text(press.reason)}
            if press.amount is not None:
                typed["answers__amount"] = text(press.amount)
            answer = member.submit(slack.views[-1], **typed)
            if answer.content:
                return str(answer.content.decode())
        until(all_answered)
        return everything(slack.replies[answered:])

    def said(self) -> str:
        """All that was answered to clicks so far."""
        return everything(self._channel.slack.replies)

    def press_changed(self, user: User) -> None:
        """Approve on the card as it was last redrawn."""
        self._members[user.pk].press(self._channel.slack.updates[-1], "kampong_approve")
        until(all_answered)


def _number(typed: str) -> int | str:
    return int(typed) if typed.isdigit() else typed
