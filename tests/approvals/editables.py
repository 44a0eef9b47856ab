"""A workflow whose payment and whose earlier answers people may change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.workbench import HEAD
from workflows.registry import SpecFile, read_spec

#: draft (GET) - pay (POST, waits, may be changed) - receipt (POST).
TEXT = (
    HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
    + """\
  tools:
    - {name: fetch, action: http_request, method: GET, url: "URL/draft"}
    - name: pay
      action: http_request
      method: POST
      url: "${PAY_HOST}/pay"
      headers: {Authorization: "Bearer ${PAY_TOKEN}"}
      query: {team: blue}
      body: {json: {amount: "{{ draft.amount }}", to: "for {{ draft.who }}", rows: [1, two]}}
      approval: {POLICY}
    - {name: receipt, action: http_request, method: POST, url: "URL/receipt", body: {json: {of: "{{ draft.who }}"}}}
  workflow:
    - {step: draft, type: tool, tool: fetch}
    - {step: pay, type: tool, tool: pay}
    - {step: receipt, type: tool, tool: receipt}
"""
)
ANSWERS: dict[str, Any] = {
    "GET /draft": {"json": {"amount": 120, "who": "Asha", "lines": ["a", "b"]}},
    "POST /pay": {"json": {"id": "p-1"}},
    "POST /receipt": {"json": {"ok": True}},
}
EDITABLE = (
    'editable: [action.body.json.amount, action.body.json.to, action.query.team, "draft.who", "draft.lines[1]",'
    " action.url, action.headers.Authorization, draft.ghost]"
)


def a_payment(folder: Path, url: str, policy: str = "", editable: str = EDITABLE) -> SpecFile:
    """The workflow with this policy besides what may be changed."""
    parts = ", ".join(part for part in (editable, policy) if part)
    path = folder / "clerk.yaml"
    path.write_text(TEXT.replace("POLICY", parts).replace("URL", url), encoding="utf-8")
    return read_spec(path)
