"""What people do at the desk, with everything that they are shown kept: Slack, mails, sockets, pages."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from approvals.models import ApprovalRequest
from tests.canary.journey import Journey
from tests.canary.planted import SECRETS
from tests.fakes_mail import FakeMail, part
from tests.fakes_slack import FORM_TYPE, HOOK, Member, form, signed, text
from tests.served import until

LINK = re.compile(r"/(?:approvals|slack)/link/([A-Za-z0-9_:.-]+)")
_HIDDEN = re.compile(r'name="(csrfmiddlewaretoken|digest|previewed)" value="([^"]*)"')


@contextmanager
def socket(journey: Journey) -> Iterator[None]:
    """Keep every frame of the queue's socket, until the end of the block."""
    address = f"{journey.served.url.replace('http', 'ws', 1)}/ws/approvals"
    headers = {"Authorization": f"Bearer {journey.token}"}
    with connect(address, additional_headers=headers, proxy=None) as connection:

        def read() -> None:
            with suppress(ConnectionClosed):
                for frame in connection:
                    journey.seen.keep("socket", str(frame))

        reader = threading.Thread(target=read)
        reader.start()
        yield
        connection.close()
        reader.join(30)


class InSlack:
    """A member who presses at the real server, with Slack's own signature."""

    def __init__(self, journey: Journey) -> None:
        self._journey, self._slack = journey, journey.slack
        self._member = Member(slack=journey.slack, id="U1", name="lim")

    @property
    def card(self) -> dict[str, Any]:
        """The last one that was posted with buttons."""
        return [post for post in self._slack.posts if "actions" in {block["type"] for block in post["blocks"]}][-1]

    def press(self, action: str = "kampong_approve") -> None:
        self._send(self._member.payload(self.card, action))

    def submit(self, **typed: Any) -> None:
        view = self._slack.views[-1]
        values = {name: {"v": element} for name, element in typed.items()}
        sent = {"callback_id": view["callback_id"], "private_metadata": view["private_metadata"]}
        user, state = {"id": "U1", "username": "lim"}, {"values": values}
        view = {**sent, "state": state}
        self._send({"type": "view_submission", "user": user, "team": {"id": "T1"}, "view": view})

    def _send(self, payload: dict[str, Any]) -> None:
        body, url = form(payload), f"{self._journey.served.url}/slack/interactions"
        headers = signed(body, secret=SECRETS["SLACK_SIGNING_SECRET"]) | {"Content-Type": FORM_TYPE}
        answer = httpx2.post(url, content=body, headers=headers, trust_env=False, timeout=30)
        self._journey.seen.keep("answer to a click", answer.text)
        assert answer.status_code == 200, answer.text

    def link_account(self) -> None:
        """Press as somebody unknown, and follow the link in the answer, signed in."""
        for _ in range(2):  # the answer to the first press cannot be posted
            self.press()
        until(lambda: LINK.search(str(self._slack.of("hook"))))
        path = LINK.search(str(self._slack.of("hook")))
        assert path is not None
        page = self._journey.browser.get(path[0])
        sent = self._journey.browser.post(path[0], data=dict(_HIDDEN.findall(page.text)))
        assert sent.status_code == 200, sent.text

    def approve(self, reason: str) -> None:
        opened = len(self._slack.views)
        self.press()
        until(lambda: len(self._slack.views) > opened)
        self.submit(reason=text(reason))


def keep_what_was_sent(journey: Journey, mail: FakeMail) -> None:
    """All that Slack and the mail server got; headers and addresses of mails too."""
    for request in journey.slack.requests:
        kind = "answer to a click" if request.url.startswith(HOOK) else "message to Slack"
        journey.seen.keep(kind, request.body.decode())
    for one in mail.mails:
        journey.seen.keep("mail", "\n".join([str(one.items()), part(one, "plain"), part(one, "html")]))


def links_to(address: str, mail: FakeMail) -> list[str]:
    """The paths of the links by which this person decides, in the order of the mails."""
    texts = [part(one, "plain") for one in mail.mails if one["To"] == address]
    return [found[0] for text in texts if (found := LINK.search(text))]


def decide_by_link(journey: Journey, path: str, reason: str) -> None:
    """In a browser in which nobody is signed in."""
    with journey.served.as_nobody() as browser:
        browser.event_hooks = {"response": [journey.seen.keep_answer]}
        page = browser.get(path)
        sent = dict(_HIDDEN.findall(page.text)) | {"confirm": "yes", "reason": reason, "verdict": "approve"}
        for verdict in ("whole", "nonsense", "approve", "approve"):
            answer = browser.post(path, data=sent | {"verdict": verdict})
            assert answer.status_code < 500, answer.text
        assert "approved by" in browser.get(path).text.lower()
        assert browser.get(f"{path}x").status_code == 404


def see_all_of(journey: Journey, request: ApprovalRequest) -> None:
    """The page of the request, its downloads, a preview of a change, and the queue in its forms."""
    page = f"/admin/approvals/approvalrequest/{request.pk}"
    for path in (f"{page}/decide/", f"{page}/whole/", f"{page}/outputs/0/"):
        assert journey.browser.get(path).status_code == 200, path
    shown = journey.browser.get(f"{page}/decide/").text
    typed = dict(_HIDDEN.findall(shown)) | {"edits.0": "121", "verdict": "preview", "reason": ""}
    assert "121" in journey.browser.post(f"{page}/decide/", data=typed).text
    for query in ("", "?q=clerk", "?agent=clerk&step=pay", "?status=all"):
        journey.browser.get(f"/admin/approvals/approvalrequest/{query}")
    for words in (("show", str(request.key)), ("show", str(request.key), "--json"), ("list",), ("list", "--json")):
        journey.command("approvals", *words, "--as", journey.user.username)


def read(answer: httpx2.Response) -> Any:
    """The body of an answer that did what was asked."""
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text)
