"""Scripted answers in the place of a language model: the same words always get the same answer.

It knows the steps of the examples, and sounds unsure where the wording does. Any other step gets something that has
the form that was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Prompt = dict[str, str]


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b")


UNSURE = _words(
    "maybe", "perhaps", "might", "hm+", "some(?:how|thing)", "that thing", "not (?:so )?sure", "i (?:think|guess)"
)
OWED = _words(
    "broken?", "pieces", "crack(?:s|ed)?", "damaged?", "defect", "chipped", "wrong", "missing", "lost", "never", "late"
)
URGENT = _words(
    "urgent", "emergency", "fire", "smoke", "gas", "flood(?:ed|ing)?", "water comes", "at once", "immediately"
)
REPAIRS = _words(
    "water", "ceiling", "leaks?", "heating", "broken?", "lift", "door", "window", "lamp", "smoke", "gas", "drips?"
)
ACCOUNTS = _words("receipt", "invoice", "rent", "pay(?:ment)?", "paid", "bill", "refund", "deposit", "statement")

_ORDER = re.compile(r'Order (?P<id>\S+) is "(?P<item>[^"]*)" for (?P<total>[0-9.]+) (?P<currency>\w+)')
_TICKET = re.compile(r"The ticket is (?P<ticket>\S+), at the desk for (?P<desk>\w+)")
_WRITTEN = re.compile(r"^Ticket (?P<ticket>\S+), from (?P<whom>[^:]+): (?P<text>.*)\. Which desk")
_THANKS = re.compile(r"thanks? (?P<whom>.+?) for (?P<what>[^.!]+)")
_DEMO = "This is the demo's scripted model; it has no answer of its own to this."


def complete(question: dict[str, Any]) -> dict[str, Any]:
    """A chat completion for a question in the wire format that local model servers share."""
    prompt = _fields(str(question["messages"][-1]["content"]))
    schema = question.get("response_format", {}).get("json_schema", {}).get("schema")
    answer = _KNOWN.get(prompt.get("action", ""), _any)(prompt, schema)
    content = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    message = {"role": "assistant", "content": content}
    return {
        "object": "chat.completion",
        "model": question.get("model", "demo"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _fields(text: str) -> Prompt:
    """The lines of a prompt by their names: `User input`, `Step`, `Action`, `Query` ... in lower case."""
    found: Prompt = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(": ")
        if colon:
            found.setdefault(name.lower(), rest)
    return found


def _judge_refund(prompt: Prompt, schema: Any) -> Any:
    query = prompt.get("query", "")
    order = _ORDER.search(query)
    if order is None:
        return {"due": False, "amount": 0, "message": "We could not find your order.", "confidence": 0.2}
    total = float(order["total"])
    reason = query[order.end() :].lower()
    if UNSURE.search(reason):
        message = f"We are looking at your request about the {order['item']} and will write again."
        return {"due": False, "amount": round(total / 2, 2), "message": message, "confidence": 0.41}
    if OWED.search(reason):
        message = (
            f"We are sorry about the {order['item']}: {total:.2f} {order['currency']} are on their way back to you."
        )
        return {"due": True, "amount": total, "message": message, "confidence": 0.94}
    message = f"We have passed your wish about the {order['item']} to a colleague."
    return {"due": False, "amount": 0, "message": message, "confidence": 0.86}


def _sort_message(prompt: Prompt, schema: Any) -> Any:
    text = prompt.get("user input", "").lower()
    urgent = bool(URGENT.search(text))
    desk = "repairs" if urgent or REPAIRS.search(text) else "accounts" if ACCOUNTS.search(text) else "general"
    unsure = UNSURE.search(text) or (desk == "general" and len(text.split()) < 6)
    return {"result": {"desk": desk, "urgent": urgent}, "confidence": 0.38 if unsure else 0.92}


def _draft_reply(prompt: Prompt, schema: Any) -> Any:
    ticket = _TICKET.search(prompt.get("query", ""))
    if ticket is None:
        return "Thank you for your message. We will answer soon."
    return (
        f"Thank you for your message, it is now at the desk for {ticket['desk']} as {ticket['ticket']}. "
        "Somebody there will write to you by tomorrow."
    )


def _answer_ticket(prompt: Prompt, schema: Any) -> Any:
    written = _WRITTEN.search(prompt.get("query", ""))
    text = written["text"].lower() if written else ""
    desk = "orders" if OWED.search(text) else "payments" if ACCOUNTS.search(text) else "general"
    ticket = written["ticket"] if written else "your ticket"
    helps = {"orders": "We look after it today.", "payments": "We check the books today."}
    reply = f"Thank you for writing to us about {ticket}. {helps.get(desk, 'We will answer soon.')}"
    return {"desk": desk, "reply": reply}


def _draft_note(prompt: Prompt, schema: Any) -> Any:
    thanks = _THANKS.search(prompt.get("query", ""))
    if thanks is None:
        return "Thank you, from all of us!"
    return f"Dear {thanks['whom']}, thank you so much for {thanks['what']}!"


def _any(prompt: Prompt, schema: Any) -> Any:
    """Something of the form that was asked for, unsure of itself."""
    if schema is None:
        return _DEMO
    return _filled(schema, "")


def _filled(schema: dict[str, Any], name: str) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if name == "confidence":
        return 0.3
    kind = schema.get("type")
    if kind == "object":
        return {child: _filled(of, child) for child, of in schema.get("properties", {}).items()}
    return {"string": _DEMO, "number": 0, "integer": 0, "boolean": False, "array": []}.get(str(kind))


_KNOWN: dict[str, Callable[[Prompt, Any], Any]] = {
    "judge_refund": _judge_refund,
    "sort_message": _sort_message,
    "draft_reply": _draft_reply,
    "draft_note": _draft_note,
    "answer_ticket": _answer_ticket,
}
