"""Carries notices by email: one message to one person, plain text first, with that person's own way to the request."""

from __future__ import annotations

import base64
import smtplib
import unicodedata
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.mail import EmailMultiAlternatives, get_connection
from django.utils.crypto import salted_hmac

from approvals import people, policy
from approvals.actors import actor_for_user
from approvals.addresses import NoAddress, base_url, link_to
from approvals.models import ApprovalRequest, Notice
from approvals.notices.carriers import NotSent, OutOfDate, TryLater, Undeliverable
from approvals.notices.mail_text import Letter, letter_of
from approvals.notices.mail_unset import MailUnset
from approvals.signedlinks import token_for
from workflows.adapters.redacting import Redactor
from workflows.engine import jsontext
from workflows.visible import clipped

SECONDS = 20
WHY_LIMIT = 300


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """`user` only where the address is one active person's who may see requests: they get a link of their own."""

    address: str
    user: AbstractUser | None


class MailCarrier:
    """The only one that knows how a notice becomes a mail."""

    def send(self, notice: Notice) -> str:
        """Hand the mail to the server; its Message-ID as JSON (`{messageId}`), the same at every attempt."""
        request = notice.request
        if request is None:
            raise Undeliverable("it names no request")
        to = recipient_of(jsontext.loads(notice.address))
        if to.user is not None and _is_told_already(notice, to.user):
            raise OutOfDate("another mail of the same tells this person")
        try:
            link = _link(request, to)
            letter = letter_of(notice, request, link=link, to_viewer=to.user is not None)
            message = _message(notice, request, to, letter)
        except NoAddress as problem:
            raise TryLater(str(problem)) from problem
        _deliver(message, _hiding(link, to))
        return jsontext.dumps({"messageId": message.extra_headers["Message-ID"]})


def recipient_of(address: dict[str, Any]) -> Recipient:
    """Who an outbox row means: `{to}`, an address as the spec has it, or `{user}`, a person by id."""
    if "user" in address:
        user = people.active_user(address["user"])
        if user is None:
            raise OutOfDate("the person who was to be told is gone, or not active any more")
        if not user.email:
            raise Undeliverable(f"{clipped(user.get_username(), 100)} has no email address; enter one in the admin")
        return Recipient(address=user.email, user=user if _may_view(user) else None)
    owner = _owner(address["to"])
    if owner is None:
        return Recipient(address=address["to"], user=None)
    # To the address that the account has: one that only looks alike may be somebody else's mailbox.
    return Recipient(address=owner.email, user=owner)


def _owner(address: str) -> AbstractUser | None:
    """The one active user with this address who may see requests. Two with the same are nobody."""
    users: Any = get_user_model().objects.filter(email__iexact=address, is_active=True)
    found = [user for user in users[:50] if _folded(user.email) == _folded(address)]
    return found[0] if len(found) == 1 and _may_view(found[0]) else None


def _folded(address: str) -> str:
    return unicodedata.normalize("NFKC", address).casefold()


def _may_view(user: AbstractUser) -> bool:
    return policy.may_view(actor_for_user(user, "link"))


def _is_told_already(notice: Notice, user: AbstractUser) -> bool:
    """Whether the person is told the same by name, or by an address that is written otherwise."""
    same = Notice.objects.filter(request=notice.request_id, channel=notice.channel, about=notice.about)
    for pk, address in same.filter(created_at=notice.created_at).exclude(pk=notice.pk).values_list("pk", "address"):
        other = jsontext.loads(address)
        if "user" in other and other["user"] == user.pk:
            return True
        if "to" in other and pk < notice.pk and _folded(other["to"]) == _folded(user.email):
            return "to" in jsontext.loads(notice.address)
    return False


def _link(request: ApprovalRequest, to: Recipient) -> str:
    """The person's own link, or the page of the request, which asks to sign in."""
    if to.user is not None:
        return link_to("approval-link", token_for(request, to.user))
    return link_to("admin:approvals_approvalrequest_decide", request.pk)


def _message(notice: Notice, request: ApprovalRequest, to: Recipient, letter: Letter) -> EmailMultiAlternatives:
    headers = {
        # The same at every attempt, so that a mailbox or a person can tell a repeat after a crash.
        "Message-ID": _name("notice", notice.pk),
        "References": _name("request", request.pk),
        "Auto-Submitted": "auto-generated",
    }
    message = EmailMultiAlternatives(letter.subject, letter.text, to=[to.address], headers=headers)
    message.attach_alternative(letter.html, "text/html")
    return message


def _name(kind: str, pk: int) -> str:
    """What this site calls a message; it tells nobody how many there were."""
    mark = salted_hmac("kampong.mail", f"{kind}:{pk}").hexdigest()[:32]
    return f"<{kind}.{mark}@{urlsplit(base_url()).hostname}>"


# Delivery ----------------------------------------------------------------------------------------------------


def _hiding(link: str, to: Recipient) -> Redactor:
    """Takes out of a server's words what it was given and nobody else is: the password and the person's own link.

    A server may tell them: filters name the addresses in a mail that they refuse.
    """
    user, password = settings.EMAIL_HOST_USER or "", settings.EMAIL_HOST_PASSWORD or ""
    secrets = {link, link.rpartition("/")[2]} if to.user is not None else set()
    if password:
        sent = (password, f"\0{user}\0{password}")
        secrets |= {password, *(base64.b64encode(one.encode()).decode() for one in sent)}
    return Redactor(secrets)


def _deliver(message: EmailMultiAlternatives, hiding: Redactor) -> None:
    """One connection, one message; what the server says decides whether it is tried again."""
    timeout = getattr(settings, "EMAIL_TIMEOUT", None) or SECONDS
    try:
        with closing(get_connection(timeout=timeout)) as connection:  # it is left open where signing in fails
            message.connection = connection
            if message.send() != 1:
                raise Undeliverable("the mail server was given nobody to send it to")
    except MailUnset as problem:
        raise TryLater(str(problem)) from problem
    except smtplib.SMTPRecipientsRefused as problem:
        code, said = next(iter(problem.recipients.values()))
        raise _refusal(code, "the mail server does not take this address", _why(code, said, hiding)) from None
    except smtplib.SMTPSenderRefused as problem:
        why = _why(problem.smtp_code, problem.smtp_error, hiding)
        raise TryLater(f"DEFAULT_FROM_EMAIL is refused: {why}") from None
    except smtplib.SMTPAuthenticationError as problem:
        why = _why(problem.smtp_code, problem.smtp_error, hiding)
        raise TryLater(f"the mail server does not take the user or password of EMAIL_URL: {why}") from None
    except smtplib.SMTPDataError as problem:
        code = problem.smtp_code
        why = _why(code, problem.smtp_error, hiding)
        raise _refusal(code, "the mail server does not take this mail", why) from None
    except smtplib.SMTPNotSupportedError as problem:
        raise TryLater(f"EMAIL_URL asks for what the server cannot: {_words(problem, hiding)}") from None
    except (smtplib.SMTPException, OSError) as problem:
        raise TryLater(f"the mail server is away: {_words(problem, hiding)}") from None
    except (UnicodeError, ValueError) as problem:
        if not f"{settings.EMAIL_HOST_USER}{settings.EMAIL_HOST_PASSWORD}".isascii():
            # The error would name a character of them.
            raise TryLater("the user or password of EMAIL_URL is not plain ASCII, and no other can be sent") from None
        raise Undeliverable(f"no mail can be made for it: {_words(problem, hiding)}") from None


def _refusal(code: int, what: str, why: str) -> NotSent:
    """For good when the server says so (5xx), for now otherwise."""
    text = f"{what}: {why}"
    return Undeliverable(text) if code >= 500 else TryLater(text)


def _why(code: int, said: bytes | str, hiding: Redactor) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return clipped(hiding.text(f"{code} {text}"), WHY_LIMIT)


def _words(problem: Exception, hiding: Redactor) -> str:
    return clipped(hiding.text(str(problem) or type(problem).__name__), WHY_LIMIT)
