"""Secrets that can be found again in any spelling, the places where they are planted, and servers that tell them.

Around characters that every encoding spells in its own way, each secret has a head and a tail of letters and digits,
which no encoding changes. Whoever finds one of these marks, in capitals or not, has found the secret or a part of it.
"""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Final


def secret(letter: str, middle: str) -> str:
    """A secret with its marks."""
    return f"Zq{letter}Head{middle}Zq{letter}Tail"


#: The environment: the name of a variable, and its value.
SECRETS: Final = {
    "PAY_TOKEN": secret("A", '/+ "é&<\\%1A>'),
    "HEADER_KEY": secret("B", "=,;'"),
    "QUERY_KEY": secret("C", ' &+/?#"é\\<'),
    # In an address: what may stand there as it is.
    "URL_PART": secret("D", "~!$'()*+,;="),
    "BODY_KEY": secret("E", '\t"é\\/\u2028'),
    "MODEL_KEY": secret("F", "-._~+/"),
    "NOBODY_READS_IT": secret("G", ""),
    "BROKEN_HEADER": secret("H", "\n"),
    "HOST_PART": secret("I", ""),
    "SLACK_TOKEN": secret("N", "-._~+/"),
    "SLACK_SIGNING_SECRET": secret("O", "=/"),
    "HOOK_SECRET": secret("P", '/+= "é&<'),
}
#: Headers of a webhook whose names say that they hold a credential.
WEBHOOK_HEADERS: Final = {
    "X-Hook-Signature": secret("J", "="),
    "X-Api-Key": secret("K", ""),
    "X-Gitlab-Token": secret("L", ""),
    "Cookie": f"other={secret('M', '')}",
}
MARKS: Final = frozenset(f"Zq{letter}{part}" for letter in "ABCDEFGHIJKLMNOP" for part in ("Head", "Tail"))

SPEC: Final = """\
version: "1.1"
agent:
  id: clerk
  name: Paying clerk
  role: Clerk
  goal: Pay what is due.
  model: {{provider: openai, name: test-model, api_key: "${{MODEL_KEY}}"}}
  approval_notifier: {{type: slack, token: "${{SLACK_TOKEN}}", channel: "#payments"}}
  tools:
    - name: look
      action: http_request
      method: GET
      url: "{url}/${{URL_PART}}/invoice"
      headers: {{X-Api-Key: "${{HEADER_KEY}}"}}
      query: {{key: "${{QUERY_KEY}}"}}
      failure_when: [{{path: error, exists: true, message_path: error}}]
      extract: amount
    - name: pay
      action: http_request
      method: POST
      url: "{url}/${{URL_PART}}/pay"
      headers: {{Authorization: "Bearer ${{PAY_TOKEN}}"}}
      requires_approval: true
      body: {{json: {{amount: "{{{{ look }}}}", key: "${{BODY_KEY}}", for: "{{{{ input }}}}"}}}}
      failure_when: [{{path: error, exists: true, message_path: error}}]
    - name: receipt
      action: http_request
      method: POST
      url: "{url}/receipt"
      body: {{form: {{key: "${{BODY_KEY}}", thought: "{{{{ think }}}}"}}}}
  workflow:
    - {{step: think, type: action, action: Think}}
    - {{step: look, type: tool, tool: look}}
    - {{step: pay, type: tool, tool: pay}}
    - {{step: receipt, type: tool, tool: receipt}}
"""
#: Two calls that cannot be made, each with a secret in what is wrong with it.
UNSENDABLE: Final = """\
version: "1.1"
agent:
  id: {agent_id}
  name: Clerk
  role: Clerk
  goal: Fail.
  model: {{provider: ollama, name: test-model}}
  tools:
    - {{name: broken, action: http_request, method: GET, url: "{url}", headers: {{Authorization: "{header}"}}}}
  workflow:
    - {{step: broken, type: tool, tool: broken}}
"""


def told(*names: str) -> str:
    """These secrets in all their spellings, as a careless server puts them in its error."""
    spelled: list[str] = []
    for text in (SECRETS[name] for name in names):
        spelled += [text, urllib.parse.quote(text), urllib.parse.quote(text, safe=""), urllib.parse.quote_plus(text)]
        spelled += [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]
    return "you sent " + " | ".join(spelled)


OF_LOOK = told("URL_PART", "HEADER_KEY", "QUERY_KEY")
OF_PAY = told("URL_PART", "PAY_TOKEN", "BODY_KEY")
DUE: Final = {"json": {"amount": 120}}
#: What becomes of the payment, call by call: each failure tells the secrets in another way; then it works.
PAYMENTS: Final[list[dict[str, Any]]] = [
    {"status": 500, "json": {"error": OF_PAY}},
    {"json": {"error": OF_PAY}},
    {"text": f"this is no JSON: {OF_PAY}"},
    {"status": 302, "headers": {"Location": f"/{SECRETS['URL_PART']}/elsewhere?{urllib.parse.quote(OF_PAY)}"}},
    {"error": "the connection is dropped"},
    {"json": {"id": "p-1"}},
]
#: A Slack that tells its token, whatever it answers: the first card fails, the next is posted, no card can be changed.
SLACK: Final[dict[str, Any]] = {
    "POST https://slack.com/api/chat.postMessage": [
        {"status": 500, "text": told("SLACK_TOKEN")},
        *(
            {"json": {"ok": True, "channel": "C1", "ts": f"{number}.1", "message": told("SLACK_TOKEN")}}
            for number in range(9)
        ),
    ],
    "POST https://slack.com/api/chat.update": {"json": {"ok": False, "error": told("SLACK_TOKEN")}},
}
TOOLS: Final[dict[str, Any]] = {
    # The first run fails once here; then the run of the command line does.
    f"GET /{SECRETS['URL_PART']}/invoice": [{"json": {"error": OF_LOOK}}, DUE, DUE, {"json": {"error": OF_LOOK}}],
    f"POST /{SECRETS['URL_PART']}/pay": PAYMENTS,
    "POST /receipt": {"json": {"ok": True}},
}
#: The second answer tells the key where a message of 300 characters would be cut in the middle of it.
THOUGHTS: Final[list[Any]] = [
    {"object": "a thought"},
    {"error": "x" * 280 + " " + SECRETS["MODEL_KEY"]},
    {"object": "a second thought"},
    {"object": "a third thought"},
]
