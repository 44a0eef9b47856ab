"""The decision page in every state that it has, made through the real services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from approvals.delegating import delegate
from approvals.editing import edit_request
from approvals.rebinding import rebind
from approvals.recall import withdraw
from approvals.services import decide
from tests.approvals.policies import member
from tests.conftest import People, allow
from tests.surfaces.admin.conftest import decide_url
from tests.surfaces.forms import answering
from tests.workbench import acting, key_of, to_pause
from workflows.engine.values import Json
from workflows.registry import SpecFile, read_spec
from workflows.runs import cancel_run, newest

#: look (GET) - refund (POST, waits under the policy) - seven steps that follow.
REFUND = """\
version: "1.2"
agent:
  id: AGENT
  name: Refunds
  role: Clerk
  goal: Pay back what is due.
  model: {provider: ollama, name: test-model}
  tools:
    - {name: look, action: http_request, method: GET, url: "URL/invoice"}
    - name: refund
      action: http_request
      method: POST
      url: "URL/refunds"
      headers: {Authorization: "Bearer ${PAY_TOKEN}", X-Case: "{{ input }}"}
      body:
        json:
          amount: 120
          currency: SGD
          urgent: false
          letter: "LETTER"
          to: {name: "Bo Müller", account: "DE02 1203 0000 0000 2020 51"}
      approval: {POLICY}
    - {name: receipt, action: http_request, method: POST, url: "URL/receipt"}
    - {name: mail, action: http_request, method: POST, url: "URL/mail", requires_approval: true}
  workflow:
    - {step: look up the invoice, type: tool, tool: look}
    - {step: pay it back, type: tool, tool: refund}
    - {step: write the receipt, type: tool, tool: receipt}
    - step: is it large
      type: condition
      if: "$contains(input, 'large')"
      then: request_human_approval
      else: execute_tool(receipt)
    - {step: mail the customer, type: tool, tool: mail}
    - {step: sign off, type: approval, message: "All done?"}
    - {step: archive, type: tool, tool: receipt}
    - {step: archive again, type: tool, tool: receipt}
    - {step: last of all, type: tool, tool: receipt}
"""
ANSWERS: dict[str, Any] = {
    "GET /invoice": {
        "json": {"amount": 120, "lines": [{"what": "parcel", "price": 100}, {"what": "fee", "price": 20}]}
    },
    "POST /refunds": {"json": {"id": "r-1"}},
    "POST /receipt": {"json": {"ok": True}},
    "POST /mail": {"json": {"sent": True}},
}
LETTER = "Dear Bo,\\nwe are sorry that the parcel came late.\\nYou get 120 SGD back.\\n\\nThe refund desk"
INPUT = "case 118"


def refunding(folder: Path, url: str, policy: str = "", *, agent: str = "refunds", letter: str = LETTER) -> SpecFile:
    """The refund that waits under this policy: `approvers: {quorum: 2}`."""
    path = folder / f"{agent}.yaml"
    text = REFUND.replace("AGENT", agent).replace("URL", url).replace("POLICY", policy or "require_reason: never")
    path.write_text(text.replace("LETTER", letter), encoding="utf-8")
    return read_spec(path)


def voted(folder: Path, url: str) -> str:
    """Two of three approved, one of them for somebody who handed it on."""
    asha, chitra, dan = member("asha", "finance"), member("chitra", "finance"), member("dan")
    member("eve", "finance")
    spec = refunding(folder, url, "approvers: {quorum: 3, groups: [finance], delegate: true}", agent="voted")
    _, key = to_pause(spec, input=INPUT)
    delegate(key, to="dan", actor=acting(chitra, "admin"), reason="I am on a train")
    decide(key, approved=True, reason="fine by me", actor=acting(asha, "admin"))
    decide(key, approved=True, actor=acting(dan, "admin"))
    return key


def held_back(folder: Path, url: str, people: People) -> str:
    """The approver started it under four eyes, and holds the hammer."""
    allow(people.approver, "approvals.break_glass")
    spec = refunding(folder, url, "approvers: {four_eyes: true}", agent="held-back")
    return to_pause(spec, input=INPUT, actor=acting(people.approver))[1]


def drifted(folder: Path, url: str) -> str:
    """The spec's file changed before, on and after the step that waits."""
    spec = refunding(folder, url, agent="drifted")
    _, key = to_pause(spec, input=INPUT)
    text = spec.path.read_text(encoding="utf-8")
    text = text.replace("amount: 120", "amount: 1200").replace(
        "step: sign off, type: approval", "step: sign, type: approval"
    )
    spec.path.write_text(text, encoding="utf-8")
    return key


def editable(folder: Path, url: str, *, four_eyes: bool = False) -> str:
    """Texts, numbers, a yes or no and a mapping that can be changed before it is approved."""
    paths = "[action.body.json.amount, action.body.json.letter, action.body.json.urgent, action.body.json.currency]"
    agent = "proposing" if four_eyes else "editable"
    policy = f"editable: {paths}, approvers: {{four_eyes: {str(four_eyes).lower()}}}"
    return to_pause(refunding(folder, url, policy, agent=agent), input=INPUT)[1]


def lost(folder: Path, url: str, people: People) -> str:
    """Decided by another person meanwhile."""
    _, key = to_pause(refunding(folder, url, agent="lost"), input=INPUT)
    decide(key, approved=False, reason="not this one", actor=acting(people.approver, "api"))
    return key


def cancelled(folder: Path, url: str, people: People) -> str:
    run, key = to_pause(refunding(folder, url, agent="cancelled"), input=INPUT)
    cancel_run(run, actor=acting(people.operator, "cli"), reason="the customer withdrew it")
    return key


def recallable(folder: Path, url: str, people: People) -> str:
    """Approved a moment ago, and to be taken back for ten minutes."""
    _, key = to_pause(refunding(folder, url, "recall: 10m", agent="recallable"), input=INPUT)
    decide(key, approved=True, reason="go", actor=acting(people.approver, "admin"))
    return key


def withdrawn(folder: Path, url: str, people: People) -> tuple[str, str]:
    """An approval that was taken back, and the request that is open in its place."""
    run, key = to_pause(refunding(folder, url, "recall: 10m", agent="withdrawn"), input=INPUT)
    decide(key, approved=True, reason="go", actor=acting(people.approver, "admin"))
    withdraw(key, actor=acting(people.approver, "admin"), reason="the wrong account")
    return key, key_of(newest(run))


def proposed(folder: Path, url: str) -> str:
    """Somebody proposed a change under four eyes."""
    key = editable(folder, url, four_eyes=True)
    edits: dict[str, Json] = {"action.body.json.amount": 90, "action.body.json.urgent": True}
    edit_request(key, edits=edits, actor=acting(member("ben"), "admin"), reason="the fee is ours")
    return key


def rebound(folder: Path, url: str, people: People) -> str:
    """The step that waits was changed, and the request was bound to the change."""
    spec = refunding(folder, url, agent="rebound")
    _, key = to_pause(spec, input=INPUT)
    text = spec.path.read_text(encoding="utf-8")
    spec.path.write_text(text.replace("amount: 120", "amount: 1200"), encoding="utf-8")
    rebind(key, actor=acting(people.operator, "admin"), reason="the fee was missing")
    return key


def addresses(folder: Path, url: str, people: People) -> dict[str, str]:
    """Where the page is read in each of its states, by name."""
    policy = "approvers: {delegate: true, groups: [desk]}, require_reason: reject"
    member("nora")
    people.approver.groups.create(name="desk")
    keys = {
        "plain": to_pause(refunding(folder, url, policy), input=INPUT)[1],
        "form": to_pause(answering(folder), input="invoice 7")[1],
        "clipped": to_pause(refunding(folder, url, agent="clipped", letter="many words " * 3000), input=INPUT)[1],
        "votes": voted(folder, url),
        "glass": held_back(folder, url, people),
        "drift": drifted(folder, url),
        "edits": editable(folder, url),
        "lost": lost(folder, url, people),
        "cancelled": cancelled(folder, url, people),
        "recallable": recallable(folder, url, people),
        "again": withdrawn(folder, url, people)[1],
        "proposed": proposed(folder, url),
        "rebound": rebound(folder, url, people),
    }
    return {name: decide_url(key) for name, key in keys.items()}
