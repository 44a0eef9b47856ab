"""The message that Slack shows of a request: what is asked, with buttons while it waits, with the verdict afterwards.

It is made from what is true when it is made. A button holds the request's key and nothing else; the digest of what the
card shows is the name of the block in which the buttons stand, so that a click says what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import NoReverseMatch

from approvals import addresses, ballots, policy, records
from approvals.models import ApprovalRequest, RequestStatus
from approvals.notices.slack_text import FALLBACK_LIMIT, Block, button, context, escaped, link, section
from approvals.records import Record
from approvals.wording import changed_of, ending_of, is_open, left, parts_of
from statestore.clock import now
from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.spec.policy_model import Policy
from workflows.visible import clipped

APPROVE, REJECT = "kampong_approve", "kampong_reject"
#: What the block with the buttons is called: this, and the digest of what the card shows.
BLOCK = "kampong:"
VERDICT = "kampong_verdict"
PAGE = "admin:approvals_approvalrequest_decide"
MOST_LINES = 12
MOST_CHANGES = 5
NAME_LIMIT, VALUE_LIMIT = 80, 200


@dataclass(frozen=True, kw_only=True)
class Card:
    """`text` is what a notification says."""

    text: str
    blocks: list[Block]

    def body(self) -> dict[str, Any]:
        """The fields of a message; nothing in it becomes a link, a mention or a preview."""
        return {"text": self.text, "blocks": self.blocks, "parse": "none", "link_names": False}


def card_of(request: ApprovalRequest) -> Card:
    """The card as it is right now; `request` was read just now, with its run."""
    return _open(request) if is_open(request) else _over(request)


def button_value(key: object) -> str:
    return jsontext.dumps({"runId": str(key)})


def digest_in(block_id: object) -> str | None:
    """The digest of what the card showed; None for a block that is not ours."""
    if not isinstance(block_id, str) or not block_id.startswith(BLOCK):
        return None
    return block_id.removeprefix(BLOCK)


def page_of(request: ApprovalRequest) -> str:
    """The address of the decision page; "" where nobody has said where this site is reached, or there is no admin."""
    try:
        return addresses.link_to(PAGE, request.pk)
    except (addresses.NoAddress, NoReverseMatch):
        return ""


def verdict_of(request: ApprovalRequest) -> str:
    """What became of a request that is over, as a sentence: who, when, and where."""
    told = ending_of(request)
    return told[:1].upper() + told[1:]


def lines_of(kind: str, action: Json) -> list[str]:
    """`name: value` for each part of what will run, clipped; the last line says how many are left out."""
    lines = []
    for part in parts_of(kind, action):
        name = f"{part.group} {part.name}" if part.group else part.name
        value = part.value if isinstance(part.value, str) else jsontext.as_text(part.value)
        shown = clipped(value[: VALUE_LIMIT * 8], VALUE_LIMIT)
        lines.append(f"{clipped(name, NAME_LIMIT)}: {shown}")
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"… and {more} more, which the page shows"]


def _open(request: ApprovalRequest) -> Card:
    held = policy.policy_of(request)
    record = records.peek(request)
    action = record["action"] if record is not None else None
    blocks = [section(request.reason)]
    if action is not None:
        blocks.append(section("\n".join(lines_of(request.kind, action))))
    said = record.get("advice", {}).get("reason") if record is not None else None
    told = [f"what its rules said: {said}"] if said else []
    blocks += [*_before(request, record), *_changes(request, record)] if record is not None else []
    blocks.append(context(f"{request.agent_id}, step {request.step}", *told, *_notes(request, held)))
    page = page_of(request)
    if page:
        label = "Open the page to change values before approving" if held.editable else "Open the page"
        blocks.append(link(page, label))
    value = button_value(request.key)
    blocks.append(
        {
            "type": "actions",
            # Of the record that was read for the lines above: an edit may have come since the row was.
            "block_id": f"{BLOCK}{record['digest'] if record is not None else request.digest}",
            "elements": [button("Approve", APPROVE, value, "primary"), button("Reject", REJECT, value, "danger")],
        }
    )
    return Card(text=escaped(request.reason, FALLBACK_LIMIT), blocks=blocks)


def _before(request: ApprovalRequest, record: Record) -> list[Block]:
    """Why this is asked again, and what of it was shown otherwise before."""
    earlier = record.get("previous")
    if earlier is None:
        return []
    why = str(earlier["what_differs"]).removeprefix("nothing: ")
    present = set(lines_of(request.kind, record["action"])) if record["action"] is not None else set()
    old = lines_of(request.kind, earlier["action"]) if earlier["action"] is not None else []
    gone = [one for one in old if one not in present]
    more = [f"… and {len(gone) - MOST_CHANGES} more, which the page shows"] if len(gone) > MOST_CHANGES else []
    shown = ["What was shown before:", *gone[:MOST_CHANGES], *more] if gone else []
    rebound = earlier.get("rebound")
    head = f"Bound to a changed spec by {rebound['by']}" if rebound else "This is asked again"
    return [section("\n".join([f"{head}: {why}.", *shown]))]


def _changes(request: ApprovalRequest, record: Record) -> list[Block]:
    """What people changed since it was asked, a line each; more than Slack has room for is counted."""
    changed = changed_of(request, record)
    if changed is None:
        return []
    lines = [
        f"{clipped(one.path, NAME_LIMIT)}: {_value(one.before)} → {_value(one.after)}"
        for one in changed.values[:MOST_CHANGES]
    ]
    more = len(changed.values) - MOST_CHANGES
    lines += [f"… and {more} more, which the page shows"] if more > 0 else []
    return [section("\n".join([f"Changed by {changed.by} since it was asked:", *lines]))]


def _value(value: MaybeJson) -> str:
    if value is NOTHING:
        return "(not known any more)"
    return clipped(jsontext.dumps(value)[: VALUE_LIMIT * 8], VALUE_LIMIT)


def _notes(request: ApprovalRequest, held: Policy) -> list[str]:
    """Who decides, how long there is, what stands in the way."""
    until = f"{request.expires_at:%Y-%m-%d %H:%M} UTC"
    notes = [policy.in_words(held), f"time left: {left(request)}, until {until}"]
    if held.approvers.quorum > 1:
        votes = ballots.standing(request)
        names = ", ".join(vote["by"] for vote in votes["by"])
        notes.append(f"approved by {votes['given']} of {votes['needed']}" + (f": {names}" if names else ""))
    if request.doubt:
        notes.append(request.doubt)
    if held.editable and not page_of(request):
        notes.append("values can be changed on the request's page, not here")
    return notes


def _over(request: ApprovalRequest) -> Card:
    verdict = verdict_of(request)
    shown = context(verdict)
    if request.status == RequestStatus.DECIDED and request.recall_until is not None and request.recall_until > now():
        shown = context(verdict, f"it can be taken back until {request.recall_until:%Y-%m-%d %H:%M:%S} UTC")
    blocks = [section(request.reason), {**shown, "block_id": VERDICT}]
    if page := page_of(request):
        blocks.append(link(page, "Open the page"))
    return Card(text=escaped(f"{verdict}: {request.reason}", FALLBACK_LIMIT), blocks=blocks)
