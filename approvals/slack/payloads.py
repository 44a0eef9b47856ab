"""What Slack says: a pressed button or a sent form, checked for shape (engine semantics 19.2, 19.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from approvals.notices.slack_card import APPROVE, REJECT, digest_in
from approvals.slack_links import Account, account
from workflows.api import bodies
from workflows.api.errors import UnsupportedMediaType
from workflows.engine import jsontext
from workflows.errors import Invalid

FORM_TYPE = "application/x-www-form-urlencoded"
#: What our modal is called.
MODAL = "kampong_decide"
_MOST_FIELDS = 20


@dataclass(frozen=True, kw_only=True)
class Click:
    """A pressed button. `digest` is of what the card showed, None where the message is not our card."""

    account: Account
    approved: bool
    key: str
    digest: str | None
    response_url: str
    trigger_id: str
    message: tuple[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A sent modal: the decision that was begun with a click, and what was typed (`values` as Slack has them)."""

    account: Account
    approved: bool
    key: str
    digest: str | None
    response_url: str
    values: dict[str, Any]


def read(content_type: str | None, raw: bytes) -> Click | Sent:
    """UnsupportedMediaType, or Invalid for whatever is not one of the two."""
    if content_type != FORM_TYPE:
        raise UnsupportedMediaType(f"the body must be {FORM_TYPE}", accepted=[FORM_TYPE])
    try:
        fields = parse_qs(
            bodies.text_of(raw),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise _invalid("", "the body is no form that can be read") from error
    if len(fields.get("payload", [])) != 1:
        raise _invalid("payload", "one field of this name is needed")
    payload = _json(fields["payload"][0], "payload")
    if payload.get("type") == "view_submission":
        return _sent(payload)
    return _click(payload)


def _click(payload: dict[str, Any]) -> Click:
    actions = payload.get("actions")
    if not isinstance(actions, list) or not actions or not isinstance(actions[0], dict):
        raise _invalid("payload.actions", "a pressed button is needed")
    action: dict[str, Any] = actions[0]
    pressed = _text(action, "action_id", "payload.actions[0]")
    value = _json(_text(action, "value", "payload.actions[0]"), "payload.actions[0].value")
    key = _text(value, "runId", "payload.actions[0].value")
    response_url = _text(payload, "response_url", "payload")
    if pressed not in (APPROVE, REJECT):
        raise _invalid("payload.actions[0].action_id", f"unknown action; known: {APPROVE}, {REJECT}")
    return Click(
        account=_account(payload),
        approved=pressed == APPROVE,
        key=key,
        digest=digest_in(action.get("block_id")),
        response_url=response_url,
        trigger_id=str(payload.get("trigger_id") or ""),
        message=_message(payload.get("container")),
    )


def _sent(payload: dict[str, Any]) -> Sent:
    view = _object(payload, "view", "payload")
    if view.get("callback_id") != MODAL:
        raise _invalid("payload.view.callback_id", f"unknown form; known: {MODAL}")
    begun = _json(_text(view, "private_metadata", "payload.view"), "payload.view.private_metadata")
    approved = begun.get("approved")
    if not isinstance(approved, bool):
        raise _invalid("payload.view.private_metadata.approved", "must be true or false")
    digest = begun.get("digest")
    return Sent(
        account=_account(payload),
        approved=approved,
        key=_text(begun, "key", "payload.view.private_metadata"),
        digest=digest if isinstance(digest, str) else None,
        response_url=_text(begun, "url", "payload.view.private_metadata"),
        values=_object(_object(view, "state", "payload.view"), "values", "payload.view.state"),
    )


def _account(payload: dict[str, Any]) -> Account:
    """The person's own team, which in a shared channel need not be the one where the button is.

    Slack's ids of people are of one team: somebody of another may bear the same. Where nothing says whose a person is,
    it is the team of the button's, and in an organisation, where that can be missing, the organisation.
    """
    user = _object(payload, "user", "payload")
    places = ({"id": user.get("team_id")}, payload.get("team"), payload.get("enterprise"))
    team = next((place["id"] for place in places if isinstance(place, dict) and place.get("id")), "")
    name = user.get("username") or user.get("name") or ""
    return account(str(team), _text(user, "id", "payload.user"), str(name))


def _message(container: Any) -> tuple[str, str] | None:
    """Channel and time stamp of the message that holds the button."""
    if not isinstance(container, dict):
        return None
    channel, ts = container.get("channel_id"), container.get("message_ts")
    return (channel, ts) if isinstance(channel, str) and isinstance(ts, str) else None


def _json(text: str, path: str) -> dict[str, Any]:
    try:
        value = jsontext.loads(text)
    except jsontext.NotJson as error:
        raise _invalid(path, f"no good JSON: {error.reason}") from error
    if not isinstance(value, dict):
        raise _invalid(path, "must be a JSON object")
    return value


def _object(value: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    found = value.get(name)
    if not isinstance(found, dict):
        raise _invalid(f"{path}.{name}", "must be a JSON object")
    return found


def _text(value: dict[str, Any], name: str, path: str) -> str:
    found = value.get(name)
    if not isinstance(found, str) or not found:
        raise _invalid(f"{path}.{name}", "must be text")
    return found


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}" if path else message, [{"path": path, "message": message}])
