"""Carries notices to Slack: a card for each request, kept up to date, and a line below it for all else."""

from __future__ import annotations

from typing import Any

from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.notices.carriers import OutOfDate, Undeliverable
from approvals.notices.outbox import UPDATES
from approvals.notices.slack_card import card_of
from approvals.notices.slack_client import call, token_of
from approvals.notices.slack_text import FALLBACK_LIMIT, escaped, section
from approvals.wording import left
from workflows.engine import jsontext


class SlackCarrier:
    """The only one that knows how a notice becomes a call of Slack's API."""

    def send(self, notice: Notice) -> str:
        """Post or change the message; what Slack calls it, as JSON (`{channel, ts}`)."""
        address = jsontext.loads(notice.address)
        request = notice.request
        if request is None:
            raise Undeliverable("it names no request")
        if notice.about in UPDATES:
            return _update(notice, request, address)
        body = card_of(request).body() if notice.about == "opened" else _line(notice, request)
        quiet = {"unfurl_links": False, "unfurl_media": False}
        message = {"channel": address["channel"], **body, **quiet, **_thread(notice)}
        return _name_of(call(token_of(address["token"]), "chat.postMessage", message))


def posted_card(notice: Notice) -> Notice | None:
    """The notice that posted the request's card at the same place; None where there is none."""
    cards = Notice.objects.filter(request=notice.request_id, channel="slack", address=notice.address, about="opened")
    return cards.order_by("id").last()


def _update(notice: Notice, request: ApprovalRequest, address: dict[str, Any]) -> str:
    card = posted_card(notice)
    if card is None or card.status in (NoticeStatus.DROPPED, NoticeStatus.FAILED) or _unnamed(card):
        raise OutOfDate("there is no card that could be changed")
    if card.status == NoticeStatus.WAITING:
        # Nobody is sending it (the sender sees to that): when it leaves, it is made from what is true then.
        raise OutOfDate("the card has not left yet; it will say this itself")
    message = jsontext.loads(card.sent_as) | card_of(request).body()
    call(token_of(address["token"]), "chat.update", message)
    return card.sent_as


def _unnamed(card: Notice) -> bool:
    return card.status == NoticeStatus.SENT and not card.sent_as


def _name_of(answer: dict[str, Any]) -> str:
    channel, ts = answer.get("channel"), answer.get("ts")
    return jsontext.dumps({"channel": channel, "ts": ts}) if isinstance(channel, str) and isinstance(ts, str) else ""


def _thread(notice: Notice) -> dict[str, Any]:
    """Below its card, and in the channel as well: somebody has to see it."""
    if notice.about == "opened":
        return {}
    card = posted_card(notice)
    if card is None or not card.sent_as:
        return {}
    return {"thread_ts": jsontext.loads(card.sent_as)["ts"], "reply_broadcast": True}


def _line(notice: Notice, request: ApprovalRequest) -> dict[str, Any]:
    text = _words(notice.about, jsontext.loads(notice.facts), request)
    blocks = [section(text), section(request.reason)]
    return {"text": escaped(text, FALLBACK_LIMIT), "blocks": blocks, "parse": "none", "link_names": False}


def _words(about: str, facts: dict[str, Any], request: ApprovalRequest) -> str:
    """What happened, in a sentence; all of `facts` is data."""
    time = f"time left: {left(request)}"
    match about:
        case "reminder":
            return f"This still waits for a decision; {time}."
        case "escalated":
            groups = facts.get("groups") or []
            who = ", ".join(map(str, groups)) if isinstance(groups, list) else str(groups)
            return f"This waits for so long that {who or 'others'} may decide it as well; {time}."
        case "handed":
            return f"{facts.get('by') or 'somebody'} handed this on to somebody else; {time}."
        case "glass_broken":
            by, reason = str(facts.get("by") or "somebody"), str(facts.get("reason") or "")
            return f"{by} broke the glass and approved this alone, past four eyes and the number of people: {reason}"
    raise Undeliverable(f"nothing is known to say about {about}")
