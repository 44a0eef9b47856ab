"""The subset of JSON Schema that describes a step's output (format 13)."""

from __future__ import annotations

from typing import Any

from workflows.spec import texts
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import (
    Faults,
    ListOf,
    MapOf,
    Number,
    Record,
    Text,
    Word,
    is_number,
    is_whole,
    kind_of,
    wrong_type,
)

TYPES = ("string", "number", "integer", "boolean", "object", "array")
_LENGTH = Number(least=0, whole=True)


def scalar(value: Json, path: Path, faults: Faults) -> Json:
    if not isinstance(value, (str, bool)) and not is_number(value):
        wrong_type("a string, a number or a boolean", value, path, faults)
    return value


def node(value: Json, path: Path, faults: Faults) -> Json:
    """One node, with the nodes inside it. The tree comes back as it was written."""
    NODE(value, path, faults)
    return value


NODE = Record(
    name="output schema",
    keys={
        "type": Word(words=TYPES),
        "title": Text(),
        "description": Text(),
        "default": scalar,
        "enum": ListOf(item=scalar, non_empty=True),
        "format": Word(words=("multiline",)),
        "minimum": Number(),
        "maximum": Number(),
        "minLength": _LENGTH,
        "maxLength": _LENGTH,
        "pattern": texts.REGEX,
        "properties": MapOf(value=node, name_problem=texts.identifier_problem),
        "required": ListOf(item=Text()),
        "items": node,
    },
    required=frozenset({"type"}),
    closed=True,
)


def schema_rules(schema: dict[str, Any], path: Path, faults: Faults) -> None:
    """The rules of a whole, well-formed schema."""
    if schema["type"] != "object":
        message = f'the root of an "output_schema" must have the type "object", not "{schema["type"]}"'
        faults.soft((*path, "type"), message)
        return
    _node_rules(schema, path, faults)


def gate_rules(schema: dict[str, Any], path: Path, faults: Faults) -> None:
    """What a confidence gate needs from the schema beside it."""
    properties = schema.get("properties", {})
    confidence = properties.get("confidence", {})
    if confidence.get("type") not in ("number", "integer"):
        problem = "of type number or integer"
    elif "confidence" not in schema.get("required", []):
        problem = 'and list it in "required"'
    elif "default" in confidence:
        problem = "without a default"
    else:
        return
    faults.soft(
        (*path, "properties"), f'with confidence_gate the schema must declare a property "confidence" {problem}'
    )


def _node_rules(node: dict[str, Any], path: Path, faults: Faults) -> None:
    kind = node["type"]
    properties = node.get("properties", {})
    if kind == "object" and not properties:
        faults.soft(path, 'an object must list its "properties"')
    if kind == "array" and "items" not in node:
        faults.soft(path, 'an array must declare its "items"')
    if "default" in node and not fits(node["default"], kind):
        faults.soft((*path, "default"), _misfit("default", node["default"], kind))
    for at, value in enumerate(node.get("enum", [])):
        if not fits(value, kind):
            faults.soft((*path, "enum", at), _misfit("enum value", value, kind))
    for name in node.get("required", []):
        if name not in properties:
            faults.soft((*path, "required"), f'"{clipped(name)}" is required but not declared in "properties"')
    for name, child in properties.items():
        _node_rules(child, (*path, "properties", name), faults)
    if "items" in node:
        _node_rules(node["items"], (*path, "items"), faults)


def fits(value: Json, kind: str) -> bool:
    """Whether a default or enum value is of a node's type; nothing fits objects and arrays."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return is_number(value)
        case "integer":
            return is_whole(value)
        case _:
            return False


def _misfit(what: str, value: Json, kind: str) -> str:
    if kind in ("object", "array"):
        return f"the type {kind} takes no {what}"
    return f"the {what} must fit the type {kind}, and is {kind_of(value)}"
