"""The changes of a spec that the tests of rebinding make, and what they look at."""

from __future__ import annotations

from approvals.models import ApprovalRequest
from tests.fakes_tools import FakeTools
from workflows.registry import SpecFile

INSERTED = "    - {step: extra, type: tool, tool: fetch}\n    - {step: pay,"
PAY = "    - {step: pay, type: tool, tool: pay}\n"
DRAFT = "    - {step: draft, type: tool, tool: fetch}\n"


def rewrite(spec: SpecFile, *changes: tuple[str, str]) -> None:
    text = spec.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    spec.path.write_text(text, encoding="utf-8")


def the_request(key: str) -> ApprovalRequest:
    return ApprovalRequest.objects.get(key=key)


def calls(tools: FakeTools) -> list[str]:
    return [request.url.removeprefix(tools.url) for request in tools.requests]
