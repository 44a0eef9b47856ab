"""Specs under a policy, and the people who decide by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User

from tests.conftest import ALLOWED, allow
from tests.workbench import HEAD
from workflows.registry import SpecFile, read_spec

#: look (GET) - sign, under the policy - last (POST). `tell` and `look` are there for the policy's own calls.
TEXT = (
    HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
    + """\
  tools:
    - {name: look, action: http_request, method: GET, url: "URL/look"}
    - {name: tell, action: http_request, method: POST, url: "URL/tell", body: {json: {why: WHY}}}
    - {name: pay, action: http_request, method: POST, url: "URL/pay", PAY}
    - {name: last, action: http_request, method: POST, url: "URL/last"}
  workflow:
    - SIGN
    - {step: last, type: tool, tool: last}
"""
)
ANSWERS: dict[str, Any] = {
    "GET /look": {"json": {"decision": "ask", "reason": "look at the sum"}},
    "POST /tell": {"json": {"told": True}},
    "POST /pay": {"json": {"paid": True}},
    "POST /last": {"json": {"done": True}},
}
NOWHERE = "http://127.0.0.1:9"


def text_of(sign: str, *, url: str = NOWHERE, pay: str = "requires_approval: false", why: str = "none") -> str:
    return TEXT.replace("SIGN", sign).replace("PAY", pay).replace("URL", url).replace("WHY", why)


def a_sign(folder: Path, policy: str, **more: Any) -> SpecFile:
    """An approval step with this policy: `approvers: {quorum: 2}`."""
    return written(folder, text_of(f'{{step: sign, type: approval, message: "Really?", {policy}}}', **more))


def a_pay(folder: Path, policy: str, **more: Any) -> SpecFile:
    """The call of a tool under this policy."""
    return written(folder, text_of("{step: sign, type: tool, tool: pay}", pay=f"approval: {{{policy}}}", **more))


def written(folder: Path, text: str) -> SpecFile:
    path = folder / "clerk.yaml"
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def member(name: str, *groups: str, superuser: bool = False) -> User:
    """Somebody who may decide, and is in these groups."""
    user = User.objects.create(username=name, is_staff=True, is_superuser=superuser)
    for group in groups:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return allow(user, *ALLOWED["approver"])
