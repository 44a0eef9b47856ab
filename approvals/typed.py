"""What was typed into the form of a page, as the answers that a decision takes."""

from __future__ import annotations

from typing import Any

from approvals import answers, formfields, policy
from approvals.models import ApprovalRequest
from approvals.queue import open_requests
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import Invalid
from workflows.spec.policy_model import Policy

#: The field in which a page sends back the answers with which its form began.
BEGUN = "begun"


def typed_answers(row: ApprovalRequest, actor: Actor, body: Any, *, break_glass: bool = False) -> Json | None:
    """The answers in the body of a POST. Invalid where one is no value, unless there is more to say than that.

    Nothing is approved then, whoever has to say it: the service takes no text for answers.
    """
    held = policy.policy_of(row)
    if held.form is None:
        return None
    typed, errors = formfields.read(held.form, body, begun_with(held, body.get(BEGUN)))
    if not errors:
        return typed
    still_open = open_requests(row.workspace).filter(pk=row.pk).exists()
    if still_open and policy.may_decide(row, actor, approve=True, break_glass=break_glass).allowed:
        raise Invalid("the answers do not fit the form", errors + _others(held, typed, errors))
    return "not read"


def begun_with(held: Policy, text: str | None) -> dict[str, Json] | None:
    """The answers of others with which the page's form began, as it sends them back."""
    if not text:
        return None
    try:
        begun = answers.checked(held, approved=True, answers=jsontext.loads(text))
    except (ValueError, Invalid):
        return None
    return begun if isinstance(begun, dict) else None


def _others(held: Policy, typed: Json, errors: list[dict[str, str]]) -> list[dict[str, str]]:
    """What is wrong with the fields that could be read, so that a person is told everything at once."""
    told = [error["path"] for error in errors]
    try:
        answers.checked(held, approved=True, answers=typed)
    except Invalid as more:
        found: list[dict[str, str]] = more.extra["errors"]
        return [error for error in found if not any(formfields.is_in(path, error["path"]) for path in told)]
    return []
