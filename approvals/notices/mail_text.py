"""What a mail says: who asks for what, who may decide until when, and the one link. Texts of others stay texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from approvals import policy, records, wording
from approvals.models import ApprovalRequest, Notice
from approvals.notices.carriers import OutOfDate
from workflows.engine import jsontext
from workflows.visible import clipped, visible

SUBJECT_LIMIT = 150
VALUE_LIMIT = 200
MOST_ROWS = 15
MESSAGE_LINES = 20

#: How a subject begins, and the first sentence.
_ABOUT = {
    "opened": ("", "{agent} waits for a decision."),
    "reminder": ("Still waiting: ", "{agent} still waits for a decision."),
    "escalated": ("Escalated: ", "{agent} has waited for long; you may decide as well now."),
    "handed": ("Handed to you: ", "{by} handed you a decision that {agent} waits for."),
    "glass_broken": ("Glass broken: ", "{by} broke the glass and approved alone what {agent} asked for."),
}


_FOR_YOU = "Opening the link decides nothing. It is for you alone: do not pass it on."


@dataclass(frozen=True, kw_only=True)
class Letter:
    """The parts of a mail, without its envelope."""

    subject: str
    text: str
    html: str


@dataclass(frozen=True, kw_only=True)
class _Content:
    """Everything that is said, visible, each text in lines of its own."""

    opening: str
    link_says: str
    facts: list[tuple[str, str]]
    message: list[str]
    rows: list[tuple[str, str]]
    rows_title: str
    #: What stands below everything.
    last: str


def letter_of(notice: Notice, request: ApprovalRequest, *, link: str, to_viewer: bool) -> Letter:
    """The mail of a notice. What a request holds is told only `to_viewer`, somebody who may see requests.

    Raises OutOfDate where the request is over and its content gone.
    """
    told: dict[str, Any] = jsontext.loads(notice.facts)
    begins, opening = _ABOUT[notice.about]
    agent, step = clipped(request.agent_id, 100), clipped(request.step, 80)
    by = clipped(str(told.get("by", "somebody")), 100)
    record = records.peek(request)
    if record is None and notice.about != "glass_broken":
        raise OutOfDate("the request was over before this left")
    if not to_viewer:
        record = None
    line = wording.line_of(request, record) if to_viewer else f"step {step}"
    content = _Content(
        opening=opening.format(agent=agent, by=by),
        link_says=_link_says(notice, to_viewer),
        facts=[*_facts(request, told if to_viewer else {}, line if to_viewer else ""), *_besides(record)],
        message=_lines(str(record["reason"])) if record is not None and request.kind == "approval" else [],
        rows=_rows(request, record["action"]) if record is not None else [],
        rows_title="The answer" if request.kind == "guardrail" else "What is sent",
        last=_FOR_YOU if to_viewer else "What it is about can be read after signing in.",
    )
    return Letter(
        subject=clipped(f"{begins}{agent}: {line}", SUBJECT_LIMIT),
        text=_text(content, link),
        html=render_to_string("approvals/mail/notice.html", {"content": content, "link": link}),
    )


def _link_says(notice: Notice, to_viewer: bool) -> str:
    if notice.about == "glass_broken":
        return "What became of it" if to_viewer else "Sign in to read what became of it"
    return "Read it and decide" if to_viewer else "Sign in to read it and decide"


def _besides(record: records.Record | None) -> Iterator[tuple[str, str]]:
    if record is not None and "previous" in record:
        why = str(record["previous"]["what_differs"]).removeprefix("nothing: ")
        yield "Asked again", clipped(why, 1000)
    said = record.get("advice", {}).get("reason") if record is not None else None
    if said:
        yield "What its rules said", clipped(str(said), 1000)


def _facts(request: ApprovalRequest, told: dict[str, Any], line: str) -> Iterator[tuple[str, str]]:
    yield "Workflow", clipped(request.agent_id, 100)
    yield "Step", clipped(request.step, 120)
    if line:
        yield "What", line
    yield "Started by", clipped(request.run.started_by or "nobody", 120)
    yield "Who decides", visible(policy.in_words(policy.policy_of(request)))
    if told.get("groups"):
        yield "Escalated to", clipped(", ".join(map(str, told["groups"])), 200)
    if told.get("reason"):
        yield "Reason given", clipped(str(told["reason"]), 1000)
    if wording.is_open(request):
        until = f"{request.expires_at:%Y-%m-%d %H:%M} UTC"
        yield "Time left", f"{wording.left(request)} (until {until})"
    elif line:
        yield "What became of it", visible(wording.ending_of(request))


def _lines(message: str) -> list[str]:
    """The message as it is read, each line by itself, so that none can be taken for one of ours."""
    lines = [clipped(line, 500) for line in message.splitlines()]
    return lines if len(lines) <= MESSAGE_LINES else [*lines[:MESSAGE_LINES], "… (the page shows all of it)"]


def _rows(request: ApprovalRequest, action: Any) -> list[tuple[str, str]]:
    if action is None:
        return []
    parts = list(wording.parts_of(request.kind, action))
    rows = [
        (clipped(f"{part.group} {part.name}".strip(), 100), clipped(_value(part.value), VALUE_LIMIT)) for part in parts
    ]
    if len(rows) <= MOST_ROWS:
        return rows
    return [*rows[:MOST_ROWS], ("…", f"{len(rows) - MOST_ROWS} more; the page shows all of it")]


def _value(value: Any) -> str:
    return value[: VALUE_LIMIT * 8] if isinstance(value, str) else jsontext.as_text(value)[: VALUE_LIMIT * 8]


def _text(content: _Content, link: str) -> str:
    """Plain text. Every line of others is quoted or behind a name, so that none begins like one of ours."""
    lines = [content.opening, "", f"{content.link_says}:", link, ""]
    lines += [f"{name}: {value}" for name, value in content.facts]
    if content.message:
        lines += ["", "What is asked:", *(f"> {line}" for line in content.message)]
    if content.rows:
        lines += ["", f"{content.rows_title}:", *(f"> {name}: {value}" for name, value in content.rows)]
    lines += ["", content.last]
    return "\n".join(lines) + "\n"
