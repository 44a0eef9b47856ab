"""The desk's own secrets, a payment under a policy with everything in it, and servers that tell what they are sent."""

from __future__ import annotations

import base64
import urllib.parse
from typing import Any, Final

from tests.canary.planted import DUE, MARKS, OF_LOOK, OF_PAY, SECRETS, SLACK, secret, told

MAIL_USER: Final = "desk"
MAIL_PASSWORD: Final = secret("P", "/+%@:")
DESK_MARKS: Final = MARKS | {"ZqPHead", "ZqPTail"}
#: What SMTP sends in place of the password; nothing of it can be recognised in them.
MAIL_SENT: Final = tuple(
    base64.b64encode(text.encode()).decode() for text in (MAIL_PASSWORD, f"\0{MAIL_USER}\0{MAIL_PASSWORD}")
)


def email_url(port: int) -> str:
    return f"smtp://{MAIL_USER}:{urllib.parse.quote(MAIL_PASSWORD, safe='')}@127.0.0.1:{port}"


#: A mail server that tells all it knows of whom it refuses.
MAIL_TELLS: Final = f"451 4.7.1 {urllib.parse.quote(MAIL_PASSWORD)} {' '.join(MAIL_SENT)}"

SPEC: Final = """\
version: "1.2"
agent:
  id: clerk
  name: Paying clerk
  role: Clerk
  goal: Pay what is due.
  model: {{provider: openai, name: test-model, api_key: "${{MODEL_KEY}}"}}
  trigger: {{type: webhook, secret: "${{HOOK_SECRET}}"}}
  tools:
    - name: look
      action: http_request
      method: GET
      url: "{url}/${{URL_PART}}/invoice"
      headers: {{X-Api-Key: "${{HEADER_KEY}}"}}
      query: {{key: "${{QUERY_KEY}}"}}
    - name: check
      action: http_request
      method: GET
      url: "{url}/${{URL_PART}}/check"
      headers: {{X-Api-Key: "${{HEADER_KEY}}"}}
      query: {{key: "${{QUERY_KEY}}"}}
    - name: tell
      action: http_request
      method: POST
      url: "{url}/${{URL_PART}}/tell"
      headers: {{Authorization: "Bearer ${{PAY_TOKEN}}"}}
      body: {{json: {{key: "${{BODY_KEY}}", why: "{{{{ decision.reason }}}}"}}}}
    - name: pay
      action: http_request
      method: POST
      url: "{url}/${{URL_PART}}/pay"
      headers: {{Authorization: "Bearer ${{PAY_TOKEN}}"}}
      body: {{json: {{amount: "{{{{ look.amount }}}}", key: "${{BODY_KEY}}", note: "{{{{ look.note }}}}"}}}}
      failure_when: [{{path: error, exists: true, message_path: error}}]
      approval:
        notify:
          - {{type: slack, token: "${{SLACK_TOKEN}}", channel: "#payments"}}
          - {{type: email, to: [bo@example.org, outside@elsewhere.example]}}
        approvers: {{groups: [payers], delegate: true}}
        require_reason: always
        form: {{type: object, properties: {{account: {{type: string, default: main}}}}}}
        editable: [action.body.json.amount, action.body.json.note]
        remind_every: 1h
        recall: 10m
        auto: {{check: execute_tool(check)}}
        on_decision: {{approved: execute_tool(tell)}}
  workflow:
    - {{step: look, type: tool, tool: look}}
    - {{step: pay, type: tool, tool: pay}}
"""
#: What makes the spec another one behind the step that waits.
ONE_STEP_MORE: Final = "    - {step: again, type: tool, tool: look}\n"

LOOK: Final[dict[str, Any]] = {"json": {**DUE["json"], "note": "a note that everybody may see", "long": "word " * 9000}}
TOOLS: Final[dict[str, Any]] = {
    "GET /openai/models/test-model": {"status": 401, "json": {"error": {"message": told("MODEL_KEY")}}},
    f"GET /{SECRETS['URL_PART']}/invoice": LOOK,
    f"GET /{SECRETS['URL_PART']}/check": {"status": 500, "json": {"error": OF_LOOK}},
    f"POST /{SECRETS['URL_PART']}/tell": {"json": {"told": True}},
    f"POST /{SECRETS['URL_PART']}/pay": [{"json": {"error": OF_PAY}}, {"json": {"id": "p-1"}}],
}
DESK_SLACK: Final[dict[str, Any]] = SLACK | {
    "POST https://slack.com/api/auth.test": {"json": {"ok": False, "error": told("SLACK_TOKEN")}},
    "POST https://slack.com/api/views.open": {"json": {"ok": True, "view": told("SLACK_TOKEN")}},
    # The first answer to a click cannot be posted, and says why.
    "POST https://slack.com/hooks/r": [
        {"status": 404, "text": told("SLACK_TOKEN")},
        *({"text": "ok"} for _ in range(30)),
    ],
}
