"""Signed links as a person meets them: the address out of a mail, opened in a browser that knows nobody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.signedlinks import token_for
from tests.surfaces.admin import scenes
from tests.workbench import to_pause
from workflows.models import Run
from workflows.registry import SpecFile


def link_of(key: str, user: User) -> str:
    """The path of this user's link to the request, as a mail has it."""
    request = ApprovalRequest.objects.get(key=key)
    return reverse("approval-link", args=[token_for(request, User.objects.get(pk=user.pk))])


def hidden(page: str, name: str) -> str:
    """A hidden field of the form by which it is decided."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"{name} is not on the page"
    return found[1]


class Reader:
    """A browser with CSRF checks as in life, that fills in the page's form."""

    def __init__(self, link: str, user: User | None = None) -> None:
        self.link = link
        self.client = Client(enforce_csrf_checks=True)
        if user is not None:
            self.client.force_login(user)

    def read(self) -> Any:
        return self.client.get(self.link)

    @property
    def text(self) -> str:
        text: str = self.read().content.decode()
        return text

    def filled(self, verdict: str, **fields: Any) -> dict[str, Any]:
        """What a browser sends after the box was ticked and the button pressed."""
        page = self.text
        sent = {name: hidden(page, name) for name in ("csrfmiddlewaretoken", "digest")}
        return sent | {"reason": "", "confirm": "yes", "verdict": verdict} | fields

    def send(self, sent: dict[str, Any]) -> Any:
        return self.client.post(self.link, {name: value for name, value in sent.items() if value is not None})

    def press(self, verdict: str, **fields: Any) -> Any:
        """Open the page, fill it in, press; a field that is None is left out."""
        return self.send(self.filled(verdict, **fields))


@pytest.fixture
def asking(tmp_path: Path) -> SpecFile:
    return scenes.asking(tmp_path)


@pytest.fixture
def waiting(asking: SpecFile) -> tuple[Run, str]:
    """A run at an approval step, and its key."""
    return to_pause(asking)
