"""A mail server on loopback: a real SMTP conversation, and what arrived, parsed as a mail program would."""

from __future__ import annotations

import asyncio
import email
import email.policy
import socket
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from django.test import override_settings


class FakeMail:
    """`mails` is what arrived; `refuse` maps an address to what is said to it; `says` is the answer to a mail.

    `password` lets anybody in who knows it; without one nobody's is right.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.refuse: dict[str, str] = {}
        self.says = "250 taken"
        self.password = ""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.says.startswith("2"):
            content = envelope.content if isinstance(envelope.content, bytes) else str(envelope.content).encode()
            parsed = email.message_from_bytes(content, policy=email.policy.default)
            assert isinstance(parsed, EmailMessage)
            self.mails.append(parsed)
            self.recipients.append(list(envelope.rcpt_tos))
        return self.says

    def _conversation(self) -> SMTP:
        """Nobody has to sign in."""
        return SMTP(self, hostname="mail.example.org", auth_require_tls=False, authenticator=self._sign_in)

    def _sign_in(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any) -> AuthResult:
        right = bool(self.password) and given.password == self.password.encode()
        return AuthResult(success=right, handled=False)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(self._conversation, sock=self._socket)
        self._ready.set()
        await self._ended.wait()
        server.close()
        await server.wait_closed()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(30)


def part(mail: EmailMessage, kind: str) -> str:
    """The text of the plain or the html part."""
    found = mail.get_body((kind,))
    assert found is not None, f"there is no {kind} part"
    text: str = found.get_content()
    return text


@pytest.fixture
def mail_server() -> Iterator[FakeMail]:
    """A server to which this process's mails go."""
    server = FakeMail()
    server.start()
    settings: dict[str, Any] = {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": "127.0.0.1",
        "EMAIL_PORT": server.port,
        "EMAIL_HOST_USER": "",
        "EMAIL_USE_TLS": False,
        "EMAIL_TIMEOUT": 20,
        "DEFAULT_FROM_EMAIL": "Kampong <desk@kampong.example.org>",
        "KAMPONG_BASE_URL": "https://kampong.example.org/desk",
    }
    with override_settings(**settings):
        yield server
    server.stop()
