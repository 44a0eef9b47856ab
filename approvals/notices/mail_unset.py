"""Where no mail server is named: every mail fails, and says which setting is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


class MailUnset(Exception):
    """No mail server is named. Set EMAIL_URL."""


class NoMailServer(BaseEmailBackend):
    """The mail backend of a site that has none."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> NoReturn:
        raise MailUnset("no mail server is named: set EMAIL_URL, such as smtp+tls://USER:PASSWORD@HOST:587")
