"""The form that Slack shows where a decision needs a reason or answers, and what was typed into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from approvals import ballots, formfields, records
from approvals.formfields import Errors, Field
from approvals.models import ApprovalRequest
from approvals.notices.slack_card import lines_of
from approvals.notices.slack_text import LABEL_LIMIT, Block, context, escaped, line, plain, section
from approvals.policy import in_words, policy_of
from approvals.slack.payloads import MODAL, Click
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.spec.policy_model import Policy

REASON = "reason"
ELEMENT = "v"
TEXT_LIMIT = 3000
ERROR_LIMIT = 300
_MOST_OPTIONS = 100
_METADATA_LIMIT = 3000
_BLOCK_ID_LIMIT = 255


class TooMuchForSlack(Exception):
    """Slack cannot show this form; the page can."""


def is_needed(policy: Policy, *, approved: bool) -> bool:
    """Whether a press of the button is not enough to decide."""
    wanted = policy.require_reason
    return wanted == "always" or (wanted == "reject" and not approved) or (policy.form is not None and approved)


def view_of(request: ApprovalRequest, click: Click) -> Block:
    """The modal for one click. TooMuchForSlack for a form over Slack's limits."""
    held = policy_of(request)
    word = "Approve" if click.approved else "Reject"
    begun = {"key": str(request.key), "approved": click.approved, "digest": click.digest, "url": click.response_url}
    metadata = jsontext.dumps(begun)
    if len(metadata) > _METADATA_LIMIT:
        raise TooMuchForSlack
    blocks = [section(request.reason), *_action(request), context(in_words(held))]
    for field in _inputs(drawn(request)) if click.approved else ():
        blocks.extend(_blocks(field))
    blocks.append(_reason(held, approved=click.approved))
    if len(blocks) > 100:
        raise TooMuchForSlack
    return {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": metadata,
        "title": {"type": "plain_text", "text": word},
        "submit": {"type": "plain_text", "text": word},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": blocks,
    }


def told(text: str) -> Block:
    """A modal that only says something."""
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Nothing was decided"},
        "close": {"type": "plain_text", "text": "Close"},
        "blocks": [section(text)],
    }


def drawn(request: ApprovalRequest, errors: Iterable[dict[str, str]] = ()) -> tuple[Field, ...]:
    """The fields of the policy's form; they begin with what those answered whose votes count."""
    form = policy_of(request).form
    return () if form is None else formfields.fields(form, None, errors, _begun(request))


def read(request: ApprovalRequest, values: Mapping[str, Any]) -> tuple[Json | None, str, Errors]:
    """Answers, reason, and what is no value of its field's kind; bounds are the service's to judge."""
    reason = _Typed(values, ()).getlist(REASON)
    form = policy_of(request).form
    if form is None:
        return None, reason[0] if reason else "", []
    typed = _Typed(values, tuple(_inputs(drawn(request))))
    answers, errors = formfields.read(form, typed, _begun(request))
    return answers, reason[0] if reason else "", errors


def errors_of(request: ApprovalRequest, errors: Iterable[Mapping[str, str]], *, approved: bool) -> dict[str, str]:
    """Each problem at the input to which it belongs; what belongs to none stands at the reason."""
    paths = [field.path for field in _inputs(drawn(request))] if approved else []
    found: dict[str, str] = {}
    for error in errors:
        place = next((path for path in paths if formfields.is_in(error["path"], path)), REASON)
        words = (
            error["message"] if place != REASON or error["path"] == REASON else f"{error['path']}: {error['message']}"
        )
        found[place] = escaped(f"{found[place]}; {words}" if place in found else words, ERROR_LIMIT)
    return found


def _begun(request: ApprovalRequest) -> dict[str, Json] | None:
    answered = ballots.answered(ballots.standing(request)["by"])
    return answered if isinstance(answered, dict) else None


def _action(request: ApprovalRequest) -> Iterator[Block]:
    record = records.peek(request)
    if record is not None and record["action"] is not None:
        yield section("\n".join(lines_of(request.kind, record["action"])))


def _inputs(fields: tuple[Field, ...]) -> Iterator[Field]:
    """Those that are typed into; a group is its fields."""
    for field in fields:
        if field.control == "group":
            yield from _inputs(field.fields)
        else:
            yield field


def _blocks(field: Field) -> Iterator[Block]:
    if len(field.path) > _BLOCK_ID_LIMIT or len(field.text) > TEXT_LIMIT or len(field.choices) > _MOST_OPTIONS:
        raise TooMuchForSlack
    below = field.path.split(".")[1:-1]
    label = " / ".join([*below, field.label])
    block: Block = {
        "type": "input",
        "block_id": field.path,
        "label": plain(line(label, 200), 2000),
        "optional": not (field.needed or field.pressed),
        "element": _element(field),
    }
    hint = " ".join(part for part in (field.help, field.bounds) if part)
    if hint:
        block["hint"] = plain(line(hint, 500), 2000)
    yield block


def _element(field: Field) -> Block:
    if field.control == "check":
        return _chosen("checkboxes", [_option("yes", "on")], "initial_options", list(field.chosen))
    options = [_option(shown, str(number)) for number, (_, shown) in enumerate(field.choices)]
    if field.control in ("select", "checks"):
        wanted = [field.text] if field.control == "select" else list(field.chosen)
        picked = [str(number) for number, (value, _) in enumerate(field.choices) if value in wanted]
        if field.control == "select":
            return _chosen("static_select", options, "initial_option", picked)
        return _chosen("multi_static_select", options, "initial_options", picked)
    element: Block = {"type": "plain_text_input", "action_id": ELEMENT, "multiline": field.control == "area"}
    return element | {"max_length": TEXT_LIMIT} | ({"initial_value": field.text} if field.text else {})


def _chosen(kind: str, options: list[Block], initial: str, picked: list[str]) -> Block:
    element: Block = {"type": kind, "action_id": ELEMENT, "options": options}
    found = [option for option in options if option["value"] in picked]
    if found:
        element[initial] = found[0] if initial == "initial_option" else found
    return element


def _option(text: str, value: str) -> Block:
    return {"text": plain(line(text, LABEL_LIMIT), LABEL_LIMIT), "value": value}


def _reason(held: Policy, *, approved: bool) -> Block:
    needed = held.require_reason == "always" or (held.require_reason == "reject" and not approved)
    return {
        "type": "input",
        "block_id": REASON,
        "label": {"type": "plain_text", "text": "Reason"},
        "optional": not needed,
        "element": {"type": "plain_text_input", "action_id": ELEMENT, "multiline": True, "max_length": TEXT_LIMIT},
    }


class _Typed:
    """Slack's `state.values` as the body of a POST."""

    def __init__(self, values: Mapping[str, Any], fields: tuple[Field, ...]) -> None:
        self._values = values
        self._choices = {field.path: [value for value, _ in field.choices] for field in fields}

    def getlist(self, key: str) -> list[str]:
        block = self._values.get(key)
        element = block.get(ELEMENT) if isinstance(block, dict) else None
        if not isinstance(element, dict):
            return []
        match element.get("type"):
            case "checkboxes":
                return ["on"] if element.get("selected_options") else []
            case "static_select":
                option = element.get("selected_option")
                return [self._choice(key, option)] if option else [""]
            case "multi_static_select":
                options = element.get("selected_options")
                return [self._choice(key, option) for option in options] if isinstance(options, list) else []
        text = element.get("value")
        return [text if isinstance(text, str) else ""]

    def _choice(self, key: str, option: Any) -> str:
        """The value behind an option; a text that is none of them where Slack sends one that was not offered."""
        number = option.get("value") if isinstance(option, dict) else None
        offered = {str(at): choice for at, choice in enumerate(self._choices.get(key, []))}
        return offered.get(number, "not offered") if isinstance(number, str) else "not offered"
