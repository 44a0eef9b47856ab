"""A policy's form as fields of a page, and what was typed into them back as JSON (spec 1.2, `form`).

A field is called by the path under which `approvals.answers` tells what is wrong with it, so that every problem stands
beside its field. A person who clears a field says that there is no value; an object that may be left out is, when
nothing in it was touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from workflows import formwords
from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.visible import visible

ROOT = "answers"
Node = dict[str, Any]
Errors = list[dict[str, str]]


class Typed(Protocol):
    """The body of a POST."""

    def getlist(self, key: str) -> list[str]: ...


class NotTyped(ValueError):
    """What was typed is no value of the field's kind; the text says what is wanted."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """`control` is how it is drawn: line, number, area, select, check, checks or group (of `fields`).

    `text` is what stands in it, `chosen` what is ticked; `needed` is said, `pressed` is what the browser insists on.
    """

    path: str
    node: Node
    control: str
    label: str
    help: str
    bounds: str = ""
    needed: bool = False
    pressed: bool = False
    text: str = ""
    chosen: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    fields: tuple[Field, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.path.replace(".", "-")

    @property
    def rows(self) -> int:
        """The lines of an area: what stands in it is seen, as far as that is not too much."""
        return min(12, max(4, self.text.count("\n") + 2))

    @property
    def described_by(self) -> str:
        """The ids of what explains the field to those who hear the page."""
        parts = [("help", self.help or self.bounds), ("error", self.problems)]
        return " ".join(f"{self.id}-{name}" for name, there in parts if there)

    @property
    def attributes(self) -> dict[str, str]:
        """The bounds as a browser knows them. A pattern is none: browsers match the whole text."""
        names = {
            "line": ("minLength", "maxLength"),
            "area": ("minLength", "maxLength"),
            "number": ("minimum", "maximum"),
        }
        if self.node["type"] not in ("string", "number", "integer"):
            return {}
        html = {"minimum": "min", "maximum": "max"}
        found = {
            html.get(key, key.lower()): jsontext.as_text(self.node[key])
            for key in names.get(self.control, ())
            if key in self.node
        }
        if self.control == "number":
            found["step"] = "1" if self.node["type"] == "integer" else "any"
        return found


# Drawing -----------------------------------------------------------------------------------------------------


def fields(
    form: Node,
    typed: Typed | None = None,
    errors: Iterable[dict[str, str]] = (),
    begun: dict[str, Json] | None = None,
) -> tuple[Field, ...]:
    """The fields as they are drawn: with their defaults, or with what was typed and what is wrong with it.

    `begun` are answers that fit the form, with which it begins in place of the defaults.
    """
    drawn = _fields(form, ROOT, insist=True, begun=begun)
    if typed is not None:
        drawn = tuple(_kept(field, typed) for field in drawn)
    return _with_problems(drawn, list(errors))


def elsewhere(drawn: tuple[Field, ...], errors: Iterable[Mapping[str, str]]) -> list[str]:
    """Problems that belong to no field."""
    paths = [field.path for field in flat(drawn)]
    return [error["message"] for error in errors if not any(is_in(error["path"], path) for path in paths)]


def _fields(form: Node, path: str, *, insist: bool, begun: MaybeJson = NOTHING) -> tuple[Field, ...]:
    needed = form.get("required", ())
    given = begun if isinstance(begun, dict) else {}
    return tuple(
        _field(node, f"{path}.{name}", needed=name in needed, insist=insist, begun=given.get(name, NOTHING))
        for name, node in form["properties"].items()
    )


def _field(node: Node, path: str, *, needed: bool, insist: bool, begun: MaybeJson) -> Field:
    value = node.get("default", NOTHING) if begun is NOTHING else begun
    control = _control(node, path, value)
    inner = node["items"] if node["type"] == "array" else node
    has_default = "default" in node
    # Nothing could be sent for a number or a choice that was cleared: its default would come in its place, unseen.
    cleared = has_default and (control == "select" or node["type"] in ("number", "integer"))
    typed_in = control in ("line", "number", "area", "select") and not (node["type"] == "array" and _is_lines(node))
    return Field(
        path=path,
        node=node,
        control=control,
        label=visible(node.get("title") or path.rpartition(".")[2]),
        help=visible(" ".join(text for text in (node.get("description", ""), _how(node, control)) if text)),
        bounds=visible(
            formwords.bounds_of({key: value for key, value in inner.items() if key not in ("enum", "default")})
        ),
        needed=needed and not has_default and control != "check",
        pressed=insist and typed_in and (cleared or (needed and not has_default)),
        text=_as_typed(node, control, value),
        chosen=_chosen(control, value),
        choices=tuple((jsontext.dumps(value), visible(jsontext.as_text(value))) for value in inner.get("enum", ())),
        fields=_fields(node, path, insist=insist and needed, begun=value) if control == "group" else (),
    )


def _control(node: Node, path: str, value: MaybeJson) -> str:
    kind = node["type"]
    if kind == "object":
        return "group" if path.count(".") == 1 else "area"
    if kind == "array":
        return "checks" if "enum" in node["items"] else "area"
    if kind == "boolean":
        return "check"
    if "enum" in node:
        return "select"
    if kind in ("number", "integer"):
        return "number"
    several = isinstance(value, str) and ("\n" in value or "\r" in value)
    return "area" if node.get("format") == "multiline" or several else "line"


def _is_lines(node: Node) -> bool:
    """A list whose items are typed one per line."""
    item = node.get("items", {})
    return item.get("type") in ("string", "number", "integer") and item.get("format") != "multiline"


def _how(node: Node, control: str) -> str:
    """How it is to be typed, where that is not plain."""
    if node["type"] == "object" and control == "area":
        shown = "; ".join(formwords.lines(node))
        return f"An object as JSON: {shown}"
    if node["type"] == "array" and control == "area":
        return "One per line." if _is_lines(node) else f"A {formwords.kind_of(node)}, as JSON."
    return ""


def _as_typed(node: Node, control: str, value: MaybeJson) -> str:
    if value is NOTHING or control in ("check", "checks", "group"):
        return ""
    if isinstance(value, list) and _is_lines(node):
        return "\n".join(jsontext.as_text(item) for item in value)
    return jsontext.dumps(value) if control == "select" else jsontext.as_text(value)


def _chosen(control: str, value: MaybeJson) -> tuple[str, ...]:
    if control == "checks" and isinstance(value, list):
        return tuple(jsontext.dumps(item) for item in value)
    return ("on",) if control == "check" and value is True else ()


def _kept(field: Field, typed: Typed) -> Field:
    """The field with what was typed into it. A number that is none stands as text, or a browser would drop it."""
    if field.control == "group":
        return replace(field, fields=tuple(_kept(one, typed) for one in field.fields))
    given = typed.getlist(field.path)
    if field.control in ("check", "checks"):
        return replace(field, chosen=tuple(given))
    text = given[0] if given else ""
    control = field.control
    if control == "number" and text:
        try:
            as_number(text, field.node["type"])
        except NotTyped:
            control = "line"
    return replace(field, text=text, control=control)


def _with_problems(drawn: tuple[Field, ...], errors: Errors) -> tuple[Field, ...]:
    return tuple(
        replace(field, fields=_with_problems(field.fields, errors), problems=tuple(_problems(field, errors)))
        for field in drawn
    )


def _problems(field: Field, errors: Errors) -> Iterable[str]:
    for error in errors:
        path, message = error["path"], error["message"]
        if path == field.path:
            yield visible(message)
        elif is_in(path, field.path) and not any(is_in(path, one.path) for one in field.fields):
            yield visible(f"{path[len(field.path) :].lstrip('.')}: {message}")


def is_in(path: str, whole: str) -> bool:
    """Whether a path leads to a field or into it."""
    return path == whole or path.startswith((f"{whole}.", f"{whole}["))


def flat(drawn: tuple[Field, ...]) -> Iterable[Field]:
    for field in drawn:
        yield field
        yield from flat(field.fields)


# Reading -----------------------------------------------------------------------------------------------------


def read(form: Node, typed: Typed, begun: dict[str, Json] | None = None) -> tuple[dict[str, Json], Errors]:
    """The answers that were typed, and what is no value of its field's kind. Bounds are the service's to judge.

    Where the form stands as it began, they are the answers with which it began: a page cannot tell all apart that
    JSON can, such as a box left alone from one that was never there.
    """
    errors: Errors = []
    if begun is not None and all(_stands(field, typed) for field in _fields(form, ROOT, insist=True, begun=begun)):
        return begun, errors
    return _read(_fields(form, ROOT, insist=True), typed, errors), errors


def _read(drawn: tuple[Field, ...], typed: Typed, errors: Errors) -> dict[str, Json]:
    answers: dict[str, Json] = {}
    for field in drawn:
        if field.control == "group":
            if field.needed or _touched(field, typed):
                answers[_name(field)] = _read(field.fields, typed, errors)
            continue
        try:
            value = _value(field, typed.getlist(field.path))
        except NotTyped as problem:
            errors.append({"path": field.path, "message": str(problem)})
            continue
        if value is not NOTHING:
            answers[_name(field)] = value
    return answers


def _name(field: Field) -> str:
    return field.path.rpartition(".")[2]


def _touched(group: Field, typed: Typed) -> bool:
    """Whether anything in the group stands otherwise than the page showed it at first."""
    for field in group.fields:
        given = typed.getlist(field.path)
        before = list(field.chosen) if field.control in ("check", "checks") else [field.text]
        if given and [unix(text) for text in given] != before:
            return True
        if not given and field.control == "check" and before:
            return True
    return False


def _stands(field: Field, typed: Typed) -> bool:
    """Whether the field was sent exactly as it was drawn."""
    if field.control == "group":
        return all(_stands(one, typed) for one in field.fields)
    given = typed.getlist(field.path)
    if field.control in ("check", "checks"):
        return sorted(given) == sorted(set(field.chosen))
    return [unix(text) for text in given] == [unix(field.text)]


def unix(text: str) -> str:
    """Browsers send the end of a line as two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _value(field: Field, given: list[str]) -> MaybeJson:
    """NOTHING where the field was left empty and that says nothing."""
    node, kind = field.node, field.node["type"]
    if field.control == "check":
        return bool(given)
    if field.control == "checks":
        picked = [_choice(field, text) for text in given]
        return picked if picked or field.needed else NOTHING
    text = unix(given[0]) if given else ""
    if field.control == "select":
        return _choice(field, text) if text else _left_empty(node)
    if kind == "string":
        return text or ("" if "default" in node else NOTHING)
    if not text.strip():
        return [] if kind == "array" and field.needed and _is_lines(node) else _left_empty(node)
    if kind in ("number", "integer"):
        return as_number(text, kind)
    if kind == "array" and _is_lines(node):
        lines = [line for line in text.split("\n") if line.strip()]
        item = node["items"]["type"]
        return list(lines) if item == "string" else [as_number(line, item) for line in lines]
    return as_json(text)


def _left_empty(node: Node) -> MaybeJson:
    """A default would come in the place of nothing, unseen."""
    if "default" in node:
        raise NotTyped("a value is needed here")
    return NOTHING


def _choice(field: Field, text: str) -> Json:
    if text not in {value for value, _ in field.choices}:
        raise NotTyped("must be one of those that are offered")
    return jsontext.loads(text)


def as_number(text: str, kind: str) -> int | float:
    """The number that was typed; NotTyped for anything else."""
    wanted = "must be a whole number, such as 12" if kind == "integer" else "must be a number, such as 12 or 12.5"
    try:
        value = jsontext.loads(text.strip())
    except ValueError as problem:
        raise NotTyped(f"{wanted}, not {text.strip()[:40]!r}") from problem
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotTyped(f"{wanted}, not {text.strip()[:40]!r}")
    return value


def as_json(text: str) -> Json:
    """The value that was typed as JSON; NotTyped for what is none."""
    try:
        return jsontext.loads(text)
    except ValueError as problem:
        raise NotTyped(f"this is not JSON: {problem}") from problem
