"""Structured output: what the model is asked for, and how its answer is judged (engine semantics 6).

Patterns are ECMAScript expressions that only the guarded child may search: `patterns` lists what to search,
`problems` is given what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workflows.engine import jsontext
from workflows.engine.values import NOTHING, Json, MaybeJson
from workflows.spec.shapes import is_number

#: A node of an `output_schema` as written: a closed mapping (format 13).
Schema = Mapping[str, Any]
#: Whether each (pattern, text) pair matched.
Found = Mapping[tuple[str, str], bool]


# What is asked -----------------------------------------------------------------------------------------------


def instructions(schema: Schema) -> str:
    """The last lines of the prompt: what to answer, and the schema, indented."""
    return f"Answer with only a JSON object that matches this JSON Schema:\n{jsontext.dumps_pretty(schema)}"


def structure(schema: Schema) -> dict[str, Json]:
    """What the provider is given: types, text enums, descriptions and required names, no bounds or patterns."""
    node: dict[str, Json] = {"type": schema["type"]}
    if "description" in schema:
        node["description"] = schema["description"]
    if schema["type"] == "string" and "enum" in schema:
        node["enum"] = list(schema["enum"])
    if schema["type"] == "array":
        node["items"] = structure(schema["items"])
    if schema["type"] == "object":
        node["properties"] = {name: structure(child) for name, child in schema["properties"].items()}
        if schema.get("required"):
            node["required"] = list(schema["required"])
    return node


def retry_prompt(prompt: str, problems: Sequence[str], raw: MaybeJson) -> str:
    """The same text once more, with what was wrong and the answer it was wrong in."""
    previous = "(there was none)" if raw is NOTHING else jsontext.dumps(raw)
    return (
        f"{prompt}\n\nThe previous answer did not match the schema: {'; '.join(problems)}\n"
        f"Previous answer: {previous}\nAnswer again with only a JSON object that matches the schema."
    )


# How the answer is judged ------------------------------------------------------------------------------------


def fill_defaults(schema: Schema, value: Json) -> Json:
    """The value with defaults for its missing properties, in nested objects that are there too.

    A missing object is not invented and list items are not filled.
    """
    if not isinstance(value, dict) or schema["type"] != "object":
        return value
    filled = dict(value)
    for name, child in schema["properties"].items():
        if name in filled:
            filled[name] = fill_defaults(child, filled[name])
        elif "default" in child:
            filled[name] = child["default"]
    return filled


def patterns(schema: Schema, value: Json) -> tuple[tuple[str, str], ...]:
    """The pairs of pattern and text that `problems` has to know about, each once."""
    return tuple(dict.fromkeys(_patterns(schema, value)))


def _patterns(schema: Schema, value: Json) -> Iterator[tuple[str, str]]:
    if schema["type"] == "string" and isinstance(value, str) and "pattern" in schema:
        yield schema["pattern"], value
    elif schema["type"] == "array" and isinstance(value, list):
        for item in value:
            yield from _patterns(schema["items"], item)
    elif schema["type"] == "object" and isinstance(value, dict):
        for name, child in schema["properties"].items():
            if name in value:
                yield from _patterns(child, value[name])


def problems(schema: Schema, value: MaybeJson, found: Found) -> list[str]:
    """Everything that is wrong with an answer, each problem starting with its path from `output`."""
    return list(_problems(schema, value, found, "output"))


def gate_problem(value: Json) -> str | None:
    """What is wrong with the `confidence` of a gate's answer that has no other problem."""
    confidence = value.get("confidence")
    if is_number(confidence) and 0 <= confidence <= 1:
        return None
    return "output.confidence: must be a number from 0 to 1"


def _problems(schema: Schema, value: Json, found: Found, path: str) -> Iterator[str]:
    kind = schema["type"]
    if not _fits(kind, value):
        yield f"{path}: must be {_WANTED[kind]}"
        return
    if kind == "object":
        yield from _object_problems(schema, value, found, path)
        return
    if kind == "string":
        yield from _text_problems(schema, value, found, path)
    elif kind == "array":
        for index, item in enumerate(value):
            yield from _problems(schema["items"], item, found, f"{path}[{index}]")
    elif kind != "boolean":
        yield from _bound_problems(schema, value, path)
    if "enum" in schema and not any(jsontext.same(value, allowed) for allowed in schema["enum"]):
        yield f"{path}: must be one of {', '.join(map(jsontext.as_text, schema['enum']))}"


def _object_problems(schema: Schema, value: Mapping[str, Json], found: Found, path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is required"
    for name, child in schema["properties"].items():
        if name in value:
            yield from _problems(child, value[name], found, f"{path}.{name}")


def _text_problems(schema: Schema, value: str, found: Found, path: str) -> Iterator[str]:
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield f"{path}: must have at least {jsontext.as_text(schema['minLength'])} characters"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield f"{path}: must have at most {jsontext.as_text(schema['maxLength'])} characters"
    if "pattern" in schema and not found[schema["pattern"], value]:
        yield f"{path}: must match the pattern {schema['pattern']}"


def _bound_problems(schema: Schema, value: int | float, path: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: must be at least {jsontext.as_text(schema['minimum'])}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{path}: must be at most {jsontext.as_text(schema['maximum'])}"


_WANTED = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number (integer)",
    "boolean": "true or false (boolean)",
    "array": "a list (array)",
    "object": "an object",
}


def _fits(kind: str, value: Json) -> bool:
    if kind == "number":
        return is_number(value)
    if kind == "integer":
        return is_number(value) and (isinstance(value, int) or value.is_integer())
    types: Mapping[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict}
    return isinstance(value, types[kind])
