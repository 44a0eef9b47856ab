"""What the fields of a policy's form take, in words for people (spec 1.2, `form`)."""

from __future__ import annotations

from typing import Any

from workflows.engine import jsontext
from workflows.engine.values import Json

_KINDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "array": "list",
    "object": "object",
}


def kind_of(node: dict[str, Any]) -> str:
    """`text`, `list of whole numbers`."""
    if node["type"] != "array":
        return _KINDS[node["type"]]
    item = _KINDS.get(node["items"]["type"], "")
    return f"list of {item}" if item in ("text", "yes or no") else f"list of {item}s"


def bounds_of(node: dict[str, Any]) -> str:
    """What a value must keep to, and its default; empty where anything of the kind will do."""
    said = {
        "minimum": "at least {}",
        "maximum": "at most {}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "pattern": "must match the pattern {}",
    }
    words = [text.format(jsontext.as_text(node[key])) for key, text in said.items() if key in node]
    if "enum" in node:
        words.append(f"one of {', '.join(map(jsontext.as_text, node['enum']))}")
    if "default" in node:
        words.append(f"{jsontext.as_text(node['default']) or 'empty'} unless you say")
    return "; ".join(words)


def lines(form: dict[str, Any], within: str = "") -> list[str]:
    """A line for each field, fields of objects by their path: `amount (number, needed; at least 1): What to pay`."""
    needed = form.get("required", ())
    found = []
    for name, node in form["properties"].items():
        path = f"{within}{name}"
        bounds = bounds_of(node["items"] if node["type"] == "array" else node)
        head = ", ".join([kind_of(node), *(["needed"] if name in needed and "default" not in node else [])])
        told = " - ".join(node[key] for key in ("title", "description") if node.get(key))
        found.append(f"{path} ({head}{'; ' if bounds else ''}{bounds}){': ' if told else ''}{told}")
        if node["type"] == "object":
            found += lines(node, f"{path}.")
    return found


def example(form: dict[str, Any]) -> dict[str, Json]:
    """An object with the needed fields, for somebody to fill in."""
    return {name: _filled(form["properties"][name]) for name in form.get("required", ())}


def _filled(node: dict[str, Any]) -> Json:
    if node["type"] == "object":
        return example(node)
    blank: dict[str, Json] = {"string": "...", "number": 0, "integer": 0, "boolean": False, "array": []}
    default: Json = node.get("default", node.get("enum", [blank[node["type"]]])[0])
    return default
