"""A request in words: what will happen, what exactly is sent, what became of it. For pages, mails and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from approvals import changes
from approvals.changes import Difference
from approvals.errors import in_words
from approvals.models import ApprovalRequest, Edit, RequestStatus
from approvals.policy import policy_of
from approvals.queue import decision_of
from approvals.records import Record
from statestore.clock import now
from workflows.engine.components import CATALOGUE
from workflows.engine.values import Json
from workflows.spec.policy_model import Policy
from workflows.visible import clipped, duration

LINE = 160
#: A table that is longer than this is not read row by row: what is left shows as JSON in its last row.
MOST_ROWS = 60


@dataclass(frozen=True, kw_only=True)
class Message:
    """What an action posts or mails: how that is called, where to, what stands in front, all its texts."""

    do: str
    does: str
    place: str
    head: str
    texts: dict[str, Json]


def host_of(url: str) -> str:
    """Where a request goes, as it is written: no user name, references kept."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or url
    except ValueError:
        return url


#: How each kind is called, the field that says where to, the field that a line quotes.
_MESSAGES = {
    "slack_post_message": ("Post to the Slack channel", "Posts to the Slack channel", "channel", "text"),
    "gmail_send": ("Send a mail to", "Sends a mail to", "to", "subject"),
}


def message_of(action: Json) -> Message | None:
    """The message that an action sends, by a tool of its own or by a component; None when it is no message."""
    if not isinstance(action, dict):
        return None
    kind: Json = action.get("action")
    texts: Json = action
    if kind == "component":
        component = CATALOGUE.get(str(action.get("use")))
        op = component.ops.get(str(action.get("op"))) if component is not None else None
        if op is None:
            return None
        kind, texts = op.action, action.get("with")
    if kind not in _MESSAGES:
        return None
    do, does, place, head = _MESSAGES[kind]
    if not isinstance(texts, dict) or place not in texts or head not in texts:
        return None
    return Message(do=do, does=does, place=str(texts[place]), head=str(texts[head]), texts=texts)


def line_of(request: ApprovalRequest, record: Record | None = None) -> str:
    """What will run, in one line; with its record also where a request goes."""
    if request.kind == "tool":
        action = record["action"] if record is not None else None
        message = message_of(action)
        if message is not None:
            return clipped(f"{message.do} {message.place}: {message.head}", LINE)
        if isinstance(action, dict) and "url" in action:
            return clipped(
                f"{action.get('method', '')} {host_of(str(action['url']))} with the tool {request.tool}", LINE
            )
        return clipped(f"Call the tool {request.tool}", LINE)
    if request.kind == "guardrail":
        return clipped(f"Accept an unsure answer: {request.reason}", LINE)
    if request.mode == "record":
        return clipped(f"No run waits for it: {request.reason}", LINE)
    return clipped(request.reason, LINE)


def vote_counts(votes: dict[str, Any]) -> str:
    """What an approval did that does not decide by itself yet."""
    more = votes["needed"] - votes["given"]
    people = "person" if more == 1 else "people"
    return f"Your approval counts. {more} more {people} must approve before the run goes on."


def goes_on(request: ApprovalRequest) -> bool:
    """Whether the run goes on after a rejection too."""
    return policy_of(request).on_reject == "continue"


def promise_of(request: ApprovalRequest, record: Record) -> tuple[str, str]:
    """What approving does, and what rejecting does, each in a sentence."""
    held = policy_of(request)
    called = held.on_decision
    if request.mode == "record":
        yes, no = (f"It is kept as {outcome}. No run waits for it." for outcome in ("approved", "rejected"))
        return _one_of(held) + yes + _beside(called.approved), no + _beside(called.rejected)
    yes, no = _promise_of(request, record)
    if goes_on(request):
        no = no.replace(_ENDS, "The run goes on with its next step, which can read the rejection.")
    return _one_of(held) + _waits(held) + _first(called.approved) + yes + _stale(held), _first(called.rejected) + no


def _first(tool: str | None) -> str:
    return "" if tool is None else f"First calls the tool “{clipped(tool, LINE)}”. "


def _beside(tool: str | None) -> str:
    return "" if tool is None else f" Then the tool “{clipped(tool, LINE)}” is called, in a run of its own."


def _one_of(held: Policy) -> str:
    many = held.approvers.quorum
    return "" if many == 1 else f"It counts as one of the {many} approvals that are needed; with the last one: "


def _waits(held: Policy) -> str:
    if not held.recall:
        return ""
    return f"It can be taken back for {_length(held.recall)}, and nothing happens meanwhile. After that: "


def _stale(held: Policy) -> str:
    if not held.valid_for:
        return ""
    return f" If nothing was called {_length(held.valid_for)} after the approval, it is asked again."


def _length(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 60 else duration(timedelta(seconds=seconds))


_ENDS = "The run ends as rejected; no later step runs."


def _promise_of(request: ApprovalRequest, record: Record) -> tuple[str, str]:
    action, step = record["action"], clipped(request.step, LINE)
    no = _ENDS
    if request.kind == "tool":
        tool = clipped(request.tool, LINE)
        message = message_of(action)
        if message is not None:
            to = f"{message.does} {clipped(message.place, LINE)}"
            yes = f"{to} with the tool “{tool}” (step “{step}”), then goes on with the workflow."
        elif isinstance(action, dict) and "url" in action:
            method, host = clipped(str(action.get("method", "")), 20), clipped(host_of(str(action["url"])), LINE)
            yes = f"Sends {method} to {host} with the tool “{tool}” (step “{step}”), then goes on with the workflow."
        else:
            yes = f"Runs the tool “{tool}” (step “{step}”), then goes on with the workflow."
        return yes, f"Nothing is sent. {no}"
    if request.kind == "guardrail":
        return f"Accepts the answer of step “{step}” as it stands, and goes on with the workflow.", no
    return f"Goes on after step “{step}”.", no


@dataclass(frozen=True, kw_only=True)
class Part:
    """One value of the action: where it stands; `is_letter` for the text of a message, which is read as written."""

    group: str
    name: str
    value: Json
    is_letter: bool = False


def parts_of(kind: str, action: Json) -> Iterator[Part]:
    """The action as a table, in the order written, what matters of a message first."""
    if kind != "tool" or not isinstance(action, dict):
        fields = list(_fields(action, ""))
        if len(fields) > MOST_ROWS:
            yield Part(group="", name="output", value=action)
        else:
            yield from (Part(group="", name=name or "output", value=value) for name, value in fields)
        return
    message = message_of(action)
    for name, text in message.texts.items() if message else ():
        if name in _LETTERS:
            yield Part(group="", name=name, value=text, is_letter=True)
    for name, value in action.items():
        if message is not None and (name == "with" or name in _LETTERS):
            continue
        if isinstance(value, dict) and name in ("headers", "query", "with", "secrets"):
            yield from (Part(group=name, name=key, value=text) for key, text in value.items())
        elif isinstance(value, dict) and name == "body":
            yield from _body_parts(value)
        else:
            yield Part(group="", name=_NAMES.get(str(name), str(name)), value=value)


_NAMES: dict[str, str] = {"action": "kind of call", "use": "component"}
#: The texts of messages: what matters, so they stand first.
_LETTERS = ("channel", "text", "to", "subject", "body")


def _body_parts(body: dict[str, Json]) -> Iterator[Part]:
    for kind, content in body.items():
        fields = list(_fields(content, ""))
        if kind == "content_type" or len(fields) > MOST_ROWS:
            yield Part(group="body", name=kind, value=content)
        else:
            yield from (Part(group=f"body ({kind})", name=name or kind, value=value) for name, value in fields)


def _fields(value: Json, name: str) -> Iterator[tuple[str, Json]]:
    """The leaves of a tree with their paths; an empty object or list is a leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _fields(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _fields(inner, f"{name}[{number}]")
    else:
        yield name, value


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The edits that stand: whose they are, by name, and each value as it was asked first and as it is."""

    by: str
    values: tuple[Difference, ...]


def changed_of(request: ApprovalRequest, record: Record) -> Changed | None:
    """What people changed of a request that waits; None where nothing is changed."""
    values = changes.differences(record)
    if not values:
        return None
    names = Edit.objects.filter(request=request).order_by("id").values_list("label", flat=True)
    return Changed(by=clipped(", ".join(dict.fromkeys(names)) or "somebody", LINE), values=tuple(values))


def is_open(request: ApprovalRequest) -> bool:
    """Whether it can still be decided, as far as this row tells."""
    return request.status == RequestStatus.OPEN and request.expires_at > now()


def left(request: ApprovalRequest) -> str:
    """`6 days 23 hours`, "" when the time is over."""
    span = request.expires_at - now()
    return duration(span) if span.total_seconds() > 0 else ""


def ending_of(request: ApprovalRequest) -> str:
    """What became of a request that is over: `approved by Asha on 2026-11-29 at 10:00 UTC (admin)`."""
    decision: dict[str, Any] | None = decision_of(str(request.key), request.workspace)
    return in_words(decision) if decision is not None else request.get_status_display()
