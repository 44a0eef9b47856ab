"""What people may change of a request before it is approved, and what would run then (spec 1.2, `editable`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals import policy, records, schemas
from approvals.models import ApprovalRequest
from approvals.records import Record
from approvals.rehearsal import NoGate, rehearse, situation_of
from workflows import registry
from workflows.engine import editing, jsontext, keeping, paths
from workflows.engine.effects import Pause
from workflows.engine.values import NOTHING, Json, MaybeJson, Outputs
from workflows.engine.walk import StepFailed
from workflows.errors import Invalid, NotPossible
from workflows.models import Status
from workflows.spec.model import ActionStep, Spec
from workflows.spec.shapes import kind_of

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)?[^/?#]*")


@dataclass(frozen=True, kw_only=True)
class Editable:
    """A path that the policy lets people change, with its present value; `kind` is its type, which stays."""

    path: str
    value: Json
    kind: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One value that an edit changes: what was shown when the request was opened, and what stands with the edit.

    `before` is NOTHING where it is not known any more: the request was opened again with the edit in it.
    """

    path: str
    before: MaybeJson
    after: MaybeJson


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a decider is shown of a gate."""

    action: Json
    digest: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Edited:
    """What would run with all edits that stand: `edits` by path, and the action, digest and outputs with them.

    `original` is what is shown without any of them.
    """

    action: Json
    digest: str
    reason: str
    edits: Mapping[str, Json]
    outputs: Outputs
    original: Shown
    differences: list[Difference] = field(default_factory=list)


def preview(request: ApprovalRequest, record: Record, edits: Json) -> Edited:
    """The action with these edits over those that stand. Reads only; call it outside any transaction.

    Raises Invalid, field by field (`edits.<path>`), and NotPossible where the action cannot be rendered here.
    """
    need_editable(request)
    original = _original(request, record)
    given = _checked(request, record, edits, _readable(record, original.action))
    stood = {**standing(record), **given}
    first, kept = _readable(record, original.action), settled(record)
    places = dict.fromkeys([*kept, *policy.policy_of(request).editable])
    merged = {
        path: stood[path] for path in places if path in stood and (path in kept or not _same(first, path, stood[path]))
    }
    _need_apart(merged)
    try:
        pause, outputs = _rehearsed(request, record, merged)
    except (NoGate, editing.EditRefused, StepFailed) as problem:
        raise _refused(request, record, merged, given, problem) from problem
    _need_same_host(original.action, pause.action, given)
    return Edited(
        action=pause.action,
        digest=pause.digest,
        reason=_reason(record, pause),
        edits=merged,
        outputs=outputs,
        original=original,
        differences=_differences(record, first, merged),
    )


def need_editable(request: ApprovalRequest) -> None:
    """Invalid where nothing of the request can be changed."""
    if not policy.policy_of(request).editable:
        raise _invalid("edits", "this request takes none")
    if request.mode == "record":
        raise _invalid("edits", "the run went on without this decision, so nothing of it can be changed")


def offered(request: ApprovalRequest, record: Record) -> list[Editable]:
    """What this request lets people change, with the values that stand now, in the order of the policy."""
    if request.mode == "record":
        return []
    present: dict[str, Any] = {**records.outputs_approved(record), "action": record["action"]}
    found = ((path, _at(present, path)) for path in policy.policy_of(request).editable)
    return [Editable(path=path, value=value, kind=_kind(value)) for path, value in found if value is not NOTHING]


def standing(record: Record) -> dict[str, Json]:
    """The edits that stand, by path."""
    return dict(record.get("edits", {}))


def settled(record: Record) -> dict[str, Json]:
    """Edits of earlier outputs that were approved before the request was opened again, with their values then.

    The outputs hold them since. They stand for as long as the request does, whoever changes them further, and so does
    who proposed them.
    """
    carried, kept = record.get("carried"), record.get("settled", {})
    return {path: value for path, value in kept.items() if carried is None or paths.segments(path)[0] in carried}


def differences(record: Record) -> list[Difference]:
    """The edits that stand, beside the values with which the request was opened."""
    first = _readable(record, record["proposed_from"]["action"]) if "proposed_from" in record else {}
    return _differences(record, first, standing(record))


def _differences(record: Record, first: dict[str, Any], edits: Mapping[str, Json]) -> list[Difference]:
    kept = settled(record)
    return [
        Difference(path=path, before=NOTHING if path in kept else _at(first, path), after=value)
        for path, value in edits.items()
    ]


def facts(changed: list[Difference]) -> dict[str, Any]:
    """`{path: {before, after}}`, as the audit keeps it."""
    return {one.path: {"before": one.before, "after": one.after} for one in changed}


def with_edits(record: Record, edited: Edited) -> Record:
    """The record in which these edits stand, beside what was shown first; without any, as it was opened."""
    changed = {**record, "action": edited.action, "digest": edited.digest, "reason": edited.reason}
    changed.pop("edits", None)
    first = changed.pop("proposed_from", None)
    if edited.edits:
        changed["edits"] = dict(edited.edits)
    if edited.edits != settled(record):
        original = edited.original
        shown = {"action": original.action, "digest": original.digest, "reason": original.reason}
        changed["proposed_from"] = first or shown
    return changed


# Checking ----------------------------------------------------------------------------------------------------


def _checked(request: ApprovalRequest, record: Record, edits: Any, first: dict[str, Any]) -> dict[str, Json]:
    """The edits under the spelling of the policy; Invalid with all that is wrong with them, field by field."""
    if not isinstance(edits, dict):
        raise _invalid("edits", "an object that maps paths to new values is needed")
    listed = {tuple(paths.segments(path)): path for path in policy.policy_of(request).editable}
    errors: list[dict[str, str]] = []
    given: dict[str, Json] = {}
    for text, value in edits.items():
        path = listed.get(_segments(text))
        if path is None:
            problem = f"this cannot be changed; what can: {', '.join(listed.values())}"
        elif path in given:
            problem = f"this is given twice: it is {path} as well"
        else:
            problem = _problem(value, _at(first, path))
            given[path] = value
        if problem:
            errors.append({"path": f"edits.{_printable(text)}", "message": problem})
    if errors:
        words = "; ".join(f"{error['path']}: {error['message']}" for error in errors)
        raise Invalid(f"the edits cannot be made: {words}", errors)
    return given


def _segments(text: Any) -> tuple[str, ...]:
    try:
        return tuple(paths.segments(text))
    except ValueError:
        return ()


def _printable(path: str) -> str:
    """A path as it came can hold what no text of an answer may: half a surrogate pair, NUL."""
    return path.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:200]


def _problem(value: Json, first: MaybeJson) -> str:
    try:
        jsontext.check(value)
    except jsontext.NotJson as problem:
        return f"{problem.reason} (at {problem.path})" if problem.path else problem.reason
    size = len(jsontext.dumps(value).encode())
    if size > keeping.MAX_OUTPUT:
        return f"{size} bytes of JSON; at most {keeping.MAX_OUTPUT} can be kept"
    if first is NOTHING:
        return "there is nothing at this place"
    if kind_of(first) != kind_of(value):
        return f"it is {kind_of(first)} and must stay one, not become {kind_of(value)}"
    return ""


def _need_apart(merged: Mapping[str, Json]) -> None:
    """Invalid where one edit lies inside another: which of them is meant would hang on their order."""
    places = {path: tuple(paths.segments(path)) for path in merged}
    for inner, place in places.items():
        outer = next((path for path, other in places.items() if path != inner and place[: len(other)] == other), None)
        if outer is not None:
            raise _invalid(f"edits.{inner}", f"this lies inside {outer}, which is changed as well; change one of them")


def _need_same_host(original: Json, action: Json, given: Mapping[str, Json]) -> None:
    """Invalid where an edit sends what is filled in from the environment to another host: whoever edits would have it.

    Where the host is filled in itself, nobody here knows which it is.
    """
    if not isinstance(original, dict) or not isinstance(action, dict) or "url" not in action:
        return
    if _host_in(original.get("url")) == _host_in(action["url"]):
        return
    others = {name: value for name, value in action.items() if name != "url"}
    carried = _REFERENCE.search(jsontext.dumps(others))
    if carried is None:
        return
    words = f"with it the call would take {carried[0]}, which is filled in from the environment, to another host"
    errors = [{"path": f"edits.{path}", "message": words} for path in given if path == "action.url"]
    errors = errors or [{"path": f"edits.{path}", "message": words} for path in given]
    told = ", ".join(one["path"] for one in errors)
    raise Invalid(f"the edits cannot be made: {told}: {words}", errors)


def _host_in(url: Json) -> str:
    """Scheme, user and host as they are written, references kept."""
    found = _HOST.match(str(url))
    return found[0] if found is not None else ""


def _same(first: dict[str, Any], path: str, value: Json) -> bool:
    """Whether this is the value that was there first: then nothing is changed."""
    was = _at(first, path)
    return was is not NOTHING and jsontext.canonical(was) == jsontext.canonical(value)


def _refused(
    request: ApprovalRequest, record: Record, merged: Mapping[str, Json], given: Mapping[str, Json], problem: Exception
) -> Invalid:
    """Which of the new edits cannot be made, each tried by itself; all of them where they only fail together."""
    errors = []
    others = {path: value for path, value in merged.items() if path not in given}
    for path in merged:
        if path not in given:
            continue
        try:
            _rehearsed(request, record, {**others, path: merged[path]})
        except (NoGate, editing.EditRefused, StepFailed) as cause:
            errors.append({"path": f"edits.{path}", "message": str(cause)})
    errors = errors or [{"path": "edits", "message": str(problem)}]
    words = "; ".join(f"{error['path']}: {error['message']}" for error in errors)
    return Invalid(f"the edits cannot be made: {words}", errors)


# Rendering ---------------------------------------------------------------------------------------------------


def _rehearsed(request: ApprovalRequest, record: Record, edits: Mapping[str, Json]) -> tuple[Pause, Outputs]:
    """The gate with these edits and no others, and the outputs with them."""
    spec = registry.pinned(request.workspace, record["spec_hash"])
    outputs = editing.edited_outputs(records.outputs_ahead(record), edits)
    for path in editing.of_outputs(edits):
        step = paths.segments(path)[0]
        keeping.check_output(step, outputs[step])
        _need_fit(spec, step, outputs[step], path)
    pause = rehearse(spec, situation_of(record, outputs=outputs, edits=edits), record.get("url_marks", {}))
    return pause, outputs


def _need_fit(spec: Spec, name: str, output: MaybeJson, path: str) -> None:
    """EditRefused where an answer would no longer be one that its step's own schema lets through."""
    step = next((step for step in spec.agent.workflow if step.step == name), None)
    if not isinstance(step, ActionStep) or step.output_schema is None:
        return
    try:
        found = schemas.problems(step.output_schema, output)
    except schemas.PatternFailed as failed:
        raise editing.EditRefused(path, f"a pattern of its output_schema cannot be searched for: {failed}") from failed
    if found:
        raise editing.EditRefused(path, f"with it the answer does not fit its output_schema: {'; '.join(found)}")


def _original(request: ApprovalRequest, record: Record) -> Shown:
    """What is shown without edits. NotPossible where this process does not render what the worker did."""
    edits = standing(record)
    try:
        pause, _ = _rehearsed(request, record, edits)
        if pause.digest != record["digest"]:
            raise NoGate(
                "the action comes out otherwise in this process than where the run paused. Give the web server, the"
                " workers and the command line the same environment variables for the spec's vars"
            )
        if edits == settled(record):
            return Shown(action=record["action"], digest=record["digest"], reason=record["reason"])
        if "proposed_from" in record:
            return Shown(**record["proposed_from"])
        pause, _ = _rehearsed(request, record, settled(record))
    except (NoGate, editing.EditRefused, StepFailed) as problem:
        raise NotPossible(
            f"nothing can be changed here now: {problem}. Nothing was changed.", status=Status.AWAITING.value
        ) from problem
    return Shown(action=pause.action, digest=pause.digest, reason=_reason(record, pause))


def _reason(record: Record, pause: Pause) -> str:
    """A guardrail's own words hold the confidence, which a rehearsal does not know."""
    return str(record["reason"]) if pause.phase == "after" else pause.reason


def _readable(record: Record, action: Json) -> dict[str, Any]:
    """What paths lead into, as it was before any edit."""
    return {**records.outputs_ahead(record), "action": action}


def _at(readable: Mapping[str, Any], path: str) -> MaybeJson:
    first, *_ = paths.segments(path)
    return NOTHING if readable.get(first, NOTHING) is NOTHING else paths.follow(dict(readable), path)


def _kind(value: Json) -> str:
    return kind_of(value).removeprefix("a ")


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", [{"path": path, "message": message}])
