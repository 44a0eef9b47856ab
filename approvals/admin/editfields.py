"""The values that a policy lets people change, as fields of the decision page, and what was typed back as edits.

A field is called by its number, because a path can hold what no name of a field may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from approvals.admin import difference
from approvals.changes import Editable, Edited
from approvals.formfields import Field, NotTyped, Typed, as_json, as_number, unix
from workflows.admin.words import visible
from workflows.engine import jsontext, paths
from workflows.engine.values import NOTHING, Json, MaybeJson

ROOT = "edits"
_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "number", float: "number"}
_YES_OR_NO = (("true", "true"), ("false", "false"))


def fields(
    offered: Sequence[Editable], typed: Typed | None = None, errors: Iterable[Mapping[str, str]] = ()
) -> tuple[Field, ...]:
    """One for each value that can be typed, with what stands there now or with what was typed."""
    wrong: dict[str, list[str]] = {}
    for error in errors:
        wrong.setdefault(error["path"], []).append(visible(error["message"]))
    return tuple(
        _field(number, one, typed, wrong.get(f"{ROOT}.{one.path}", []))
        for number, one in enumerate(offered)
        if one.value is not None
    )


def read(offered: Sequence[Editable], typed: Typed) -> tuple[dict[str, Json], list[dict[str, str]]]:
    """What was typed otherwise than it stands, by path; and what is no value of its field's type."""
    edits: dict[str, Json] = {}
    errors: list[dict[str, str]] = []
    for number, one in enumerate(offered):
        given = typed.getlist(_name(number))
        if one.value is None or not given or unix(given[0]) == unix(_text(one.value)):
            continue
        try:
            edits[one.path] = _value(one.value, unix(given[0]))
        except NotTyped as problem:
            errors.append({"path": f"{ROOT}.{one.path}", "message": str(problem)})
    return edits, errors


def shown(edited: Edited) -> difference.Difference:
    """What the edits change: each earlier output that was edited, and the whole of the action."""
    before: dict[str, Any] = {}
    now: dict[str, Any] = {}
    for one in edited.differences:
        if paths.segments(one.path)[0] != "action":
            before |= _at(one.path, one.before)
            now |= _at(one.path, one.after)
    if edited.action is not None:
        before["action"], now["action"] = edited.original.action, edited.action
    if edited.original.reason != edited.reason:
        before["message"], now["message"] = edited.original.reason, edited.reason
    return difference.between(before, now)


def _at(path: str, value: MaybeJson) -> dict[str, Json]:
    return {} if value is NOTHING else {path: value}


def _name(number: int) -> str:
    return f"{ROOT}.{number}"


def _field(number: int, one: Editable, typed: Typed | None, problems: Sequence[str]) -> Field:
    given = typed.getlist(_name(number)) if typed is not None else []
    kind = _TYPES.get(type(one.value), "json")
    text = unix(given[0]) if given else _text(one.value)
    control = "area"
    if kind == "boolean":
        control = "select"
    elif kind == "number":
        control = "number" if _is_number(text) else "line"
    elif kind == "string" and len(text) <= 60 and "\n" not in _text(one.value) and "\n" not in text:
        control = "line"
    return Field(
        path=_name(number),
        node={"type": "string" if kind == "json" else kind},
        control=control,
        label=visible(one.path),
        help=f"A {one.kind}, as JSON." if kind == "json" else "",
        pressed=kind in ("boolean", "number"),
        text=text,
        choices=_YES_OR_NO if kind == "boolean" else (),
        problems=tuple(problems),
    )


def _is_number(text: str) -> bool:
    try:
        as_number(text, "number")
    except NotTyped:
        return False
    return True


def _text(value: Json) -> str:
    if isinstance(value, list | dict):
        return jsontext.dumps_pretty(value)
    return jsontext.as_text(value)


def _value(present: Json, text: str) -> Json:
    match present:
        case str():
            return text
        case bool():
            if text not in ("true", "false"):
                raise NotTyped("must be true or false")
            return text == "true"
        case int() | float():
            return as_number(text, "number")
        case _:
            return as_json(text)
