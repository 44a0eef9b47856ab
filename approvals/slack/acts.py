"""What a click does: `decide`, or the form that it needs first. Every click gets an answer that can be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import InterfaceError, OperationalError
from django.urls import NoReverseMatch

from approvals import addresses, policy, services
from approvals.acting import find_request
from approvals.actors import actor_for_user
from approvals.errors import ActionChanged, AlreadyResolved, ApprovalNotFound, in_words
from approvals.models import ApprovalRequest, Notice, NoticeStatus
from approvals.notices import slack_client
from approvals.notices.carriers import NotSent
from approvals.notices.outbox import channels_of
from approvals.notices.slack_card import card_of, page_of
from approvals.notices.slack_text import Block, link
from approvals.slack import modal
from approvals.slack.payloads import Click, Sent
from approvals.slack.replies import Message, in_place, only_you
from approvals.slack_links import Account, token_for, user_of
from approvals.wording import is_open, vote_counts
from workflows.actors import Actor
from workflows.api.errors import failure_of
from workflows.engine import jsontext
from workflows.errors import Busy, Invalid, NotAllowed, NotAuthenticated, Refusal, SpecChanged
from workflows.spec.policy_model import SlackChannel

#: What may come instead of a decision: a refusal, or a database that is busy or away.
REFUSALS = (Refusal, OperationalError, InterfaceError)
OPEN_SECONDS = 2


@dataclass(frozen=True, kw_only=True)
class Reply:
    """`body` is the acknowledgement's, empty for none; `messages` are posted after it."""

    body: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)


class NotLinked(Exception):
    """The Slack account decides as nobody here."""


def click(pressed: Click) -> Reply:
    """Decide, or open the form."""
    try:
        actor = _actor(pressed.account)
        request = _waiting(pressed, actor)
        if request is not None and modal.is_needed(policy.policy_of(request), approved=pressed.approved):
            policy.need(policy.may_decide(request, actor, approve=pressed.approved))
            if pressed.digest is not None and pressed.digest != request.digest:
                raise ActionChanged(shown=pressed.digest, present=request.digest)
            return Reply(messages=_open(request, pressed))
        outcome = services.decide(pressed.key, approved=pressed.approved, actor=actor, digest=pressed.digest)
    except NotLinked:
        return Reply(messages=[_how_to_link(pressed.account)])
    except REFUSALS as refusal:
        return Reply(messages=_refused(refusal, pressed.key))
    return Reply(messages=_decided(outcome, pressed.key))


def sent(form: Sent) -> Reply:
    """Decide with what was typed; problems go back to their inputs."""
    try:
        actor = _actor(form.account)
        request = _waiting(form, actor)
        answers, reason = None, ""
        if request is not None:
            answers, reason, errors = modal.read(request, form.values)
            if errors and form.approved:
                return _with_errors(request, form, errors)
        outcome = services.decide(
            form.key,
            approved=form.approved,
            actor=actor,
            reason=reason,
            answers=answers if form.approved else None,
            digest=form.digest,
        )
    except NotLinked:
        return Reply(body=_instead("this Slack account is not linked"), messages=[_how_to_link(form.account)])
    except REFUSALS as refusal:
        return _form_refused(refusal, form)
    return Reply(messages=_decided(outcome, form.key))


def away(error: OperationalError | InterfaceError, asked: Click | Sent) -> Reply:
    """There was no database to ask."""
    if isinstance(asked, Sent):
        return _form_refused(error, asked)
    return Reply(messages=[only_you(_sentence(error))])


def _actor(account: Account) -> Actor:
    user = user_of(account)
    if user is None:
        raise NotLinked
    return actor_for_user(user, "slack", detail=account.detail)


def _waiting(asked: Click | Sent, actor: Actor) -> ApprovalRequest | None:
    """The request, while it can be decided. NotAllowed before any look-up."""
    policy.need(policy.may_decide_at_all(actor))
    request = find_request(asked.key)
    return request if request is not None and is_open(request) else None


# The form ----------------------------------------------------------------------------------------------------


def _open(request: ApprovalRequest, pressed: Click) -> list[Message]:
    """Open the modal, the one call that is made before the acknowledgement; what to say where that fails."""
    try:
        view = modal.view_of(request, pressed)
    except modal.TooMuchForSlack:
        return [only_you("This form is larger than Slack can show. Decide on the request's page.", *_page(request))]
    try:
        token = slack_client.token_of(_token_reference(request, pressed))
        body = {"trigger_id": pressed.trigger_id, "view": view}
        slack_client.call(token, "views.open", body, timeout=OPEN_SECONDS)
    except NotSent as problem:
        text = f"The form could not be opened, and nothing was decided: {problem}. Press again in a moment."
        return [only_you(text, *_page(request))]
    return []


def _token_reference(request: ApprovalRequest, pressed: Click) -> str:
    """The token with which the card was posted: an app in several Slack workspaces has one in each."""
    if pressed.message is not None:
        channel, ts = pressed.message
        cards = Notice.objects.filter(request=request, channel="slack", status=NoticeStatus.SENT)
        address = cards.filter(sent_as=jsontext.dumps({"channel": channel, "ts": ts})).values_list("address", flat=True)
        if (found := address.first()) is not None:
            return str(jsontext.loads(found)["token"])
    first = next((one for one in channels_of(request) if isinstance(one, SlackChannel)), None)
    return first.token if first is not None else ""


def _with_errors(request: ApprovalRequest, form: Sent, errors: list[dict[str, str]]) -> Reply:
    shown = modal.errors_of(request, errors, approved=form.approved)
    return Reply(body={"response_action": "errors", "errors": shown})


def _form_refused(refusal: Exception, form: Sent) -> Reply:
    if isinstance(refusal, Invalid) and refusal.extra["errors"]:
        request = find_request(form.key)
        if request is not None:
            return _with_errors(request, form, refusal.extra["errors"])
    sentence = _sentence(refusal)
    if _is_busy(refusal):
        return Reply(body={"response_action": "errors", "errors": {modal.REASON: sentence}})
    return Reply(body=_instead(sentence), messages=[only_you(sentence)])


def _instead(text: str) -> dict[str, Any]:
    """The modal says why nothing came of it; what was typed is gone."""
    return {"response_action": "update", "view": modal.told(text)}


# Answers -----------------------------------------------------------------------------------------------------


def _decided(outcome: services.Outcome, key: str) -> list[Message]:
    if outcome.votes is not None:
        return [*_card(key), only_you(vote_counts(outcome.votes))]
    told = in_words(outcome.decision)
    return _card(key) or [in_place({"text": told[:1].upper() + told[1:]})]


def _refused(refusal: Exception, key: str) -> list[Message]:
    """A sentence for whoever pressed, and the card as it is now where the one with the button is out of date."""
    stale = isinstance(refusal, AlreadyResolved | ApprovalNotFound | ActionChanged)
    request = _found(key) if isinstance(refusal, SpecChanged | Invalid) else None
    page = _page(request) if request is not None else []
    return [only_you(_sentence(refusal), *page), *(_card(key) if stale else ())]


def _sentence(refusal: Exception) -> str:
    """Without the key: the message stands beside the card."""
    error = str(failure_of(refusal).body["error"])
    match refusal:
        case AlreadyResolved() | ApprovalNotFound():
            decision = refusal.extra.get("decision")
            ending = in_words(decision) if decision else "it was resolved, or its time is over"
            return f"Too late, this request is over: {ending}. Nothing was changed by you."
        case ActionChanged():
            return "What would run is not what this card showed. Nothing was decided; read the card again as it is now."
        case NotAllowed() | NotAuthenticated():
            return f"You may not decide this: {error}."
    if _is_busy(refusal):
        return "The database is busy and nothing was decided. Try again in a moment."
    return f"Nothing was decided: {error}."


def _is_busy(refusal: Exception) -> bool:
    return isinstance(refusal, Busy | OperationalError | InterfaceError)


def _card(key: str) -> list[Message]:
    """The card as it is now, in place of the old one; nothing where it cannot be read: the outbox does it later."""
    request = _found(key)
    try:
        return [] if request is None else [in_place(card_of(request).body())]
    except (OperationalError, InterfaceError):
        return []


def _found(key: str) -> ApprovalRequest | None:
    try:
        return find_request(key)
    except (OperationalError, InterfaceError):
        return None


def _page(request: ApprovalRequest) -> list[Block]:
    page = page_of(request)
    return [link(page, "Open the page")] if page else []


def _how_to_link(account: Account) -> Message:
    text = "Nothing was decided: this Slack account is not linked to a user here. "
    try:
        address = addresses.link_to("slack-link", token_for(account))
    except (addresses.NoAddress, NoReverseMatch):
        return only_you(f"{text}Ask an administrator to run: manage.py slack_link USER {account.detail}")
    once = "Link it once (the link is good for 15 minutes), then press again."
    return only_you(text + once, link(address, "Link this account"))
