"""What a decision must bring with it: a reason, the digest of what was seen, the answers of a form (spec 1.2)."""

from __future__ import annotations

from typing import Any

from approvals import schemas
from workflows.engine import jsontext, schema
from workflows.engine.values import Json
from workflows.errors import Invalid
from workflows.spec.policy_model import Policy


def check_reason(policy: Policy, *, approved: bool, reason: str, break_glass: bool = False) -> None:
    """Invalid where the policy wants a reason and none was given; breaking the glass always wants one."""
    needed = break_glass or policy.require_reason == "always" or (policy.require_reason == "reject" and not approved)
    if needed and not reason:
        raise _invalid("reason", "a reason is needed here; say in a few words why")


def check_digest(policy: Policy, *, surface: str, digest: str | None) -> None:
    """Invalid where whoever decides has to send the digest of what was shown and did not; a terminal shows and asks."""
    if policy.digest == "required" and surface != "cli" and digest is None:
        raise _invalid("digest", "this request needs the digest of what you saw: take it from GET /approvals/<key>")


def checked(policy: Policy, *, approved: bool, answers: Json | None) -> Json | None:
    """The answers with the form's defaults; Invalid, field by field, where they do not fit it.

    A rejection needs no answers and keeps none: what came with it only has to be an object.
    """
    if policy.form is None:
        if answers is not None:
            raise _invalid("answers", "this request takes none")
        return None
    given: Any = {} if answers is None else answers
    if not isinstance(given, dict):
        raise _invalid("answers", "an object with the fields of the form is needed")
    try:
        jsontext.check(given)
    except jsontext.NotJson as problem:
        raise _invalid(f"answers.{problem.path}" if problem.path else "answers", problem.reason) from problem
    if not approved:
        return None
    errors = _problems(policy.form, given := schema.fill_defaults(policy.form, given))
    if errors:
        words = "; ".join(f"{error['path']}: {error['message']}" for error in errors)
        raise Invalid(f"the answers do not fit the form: {words}", errors)
    return given


def _problems(form: dict[str, Json], given: dict[str, Json]) -> list[dict[str, str]]:
    """What is wrong with the answers, the fields that the form does not have included."""
    errors = []
    try:
        found = schemas.problems(form, given)
    except schemas.PatternFailed as failed:
        raise _invalid("answers", f"a pattern of the form cannot be searched for: {failed}") from failed
    for problem in found:
        path, _, message = problem.partition(": ")
        errors.append({"path": path.replace("output", "answers", 1), "message": message})
    known = form["properties"]
    errors += [
        {"path": f"answers.{name}", "message": "the form has no such field"} for name in given if name not in known
    ]
    return errors


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", [{"path": path, "message": message}])
