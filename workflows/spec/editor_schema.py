"""The JSON Schema for editors (format 19), made out of the shapes that loading itself uses.

Draft 7, which is what the editors' YAML server reads best, with that server's own words for messages and snippets. It
is an approximation: where it differs from loading, loading decides. It accepts every file that loads, but for what
`docs/specs.md` lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from workflows.spec import agent_shapes, editor_rules, output_schema, patterns, step_shapes, texts, tool_shapes
from workflows.spec.key_texts import TEXTS
from workflows.spec.shapes import MAX_WHOLE, Anything, Boolean, ListOf, MapOf, Number, Record, Text, Word
from workflows.spec.versions import VERSIONS

Node: TypeAlias = dict[str, Any]

#: On keys that nothing reads: a warning in the editor, and no reason to refuse.
_UNREAD: Node = {"deprecationMessage": "There is no such key here; nothing reads it."}


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def schema() -> Node:
    """The whole schema, as JSON data."""
    makers: dict[str, Record] = {
        record.name: record
        for record in (
            agent_shapes.VAR, agent_shapes.agent(tool_shapes.tool, step_shapes.STEPS), agent_shapes.MODEL,
            agent_shapes.GUARDRAILS, agent_shapes.KNOWLEDGE, agent_shapes.TRIGGER, agent_shapes.NOTIFIER,
            *tool_shapes.TOOLS.values(), tool_shapes.FAILURE_RULE, tool_shapes.RESPONSE, tool_shapes.PACE,
            tool_shapes.RETRY, *step_shapes.STEPS.typed.values(), step_shapes.STEPS.action, output_schema.NODE,
        )
    }  # fmt: skip
    document = agent_shapes.document(agent_shapes.agent(tool_shapes.tool, step_shapes.STEPS))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_record(document),
        "title": "AgentSpec 1.0 and 1.1",
        "description": "A workflow that Kampong runs. Loading the file decides where this schema is less exact.",
        "required": ["version", "agent"],
        "defaultSnippets": editor_rules.SNIPPETS["document"],
        "definitions": {
            **{_id(name): _record(record) for name, record in sorted(makers.items())},
            "tool": _one_of_tools(),
            "step": _one_of_steps(),
            "body": _body(),
        },
    }


def _record(record: Record) -> Node:
    properties = {
        key: {
            "description": TEXTS[record.name][key],
            **_of(shape),
            **editor_rules.BESIDES.get(f"{record.name}.{key}", {}),
        }
        for key, shape in record.keys.items()
    }
    if record is step_shapes.STEPS.action:
        properties["type"] = {"description": TEXTS[record.name]["type"]}
    made: Node = {
        "title": record.name,
        "type": "object",
        "properties": properties,
        "additionalProperties": False if record.closed else _UNREAD,
    }
    if record.required:
        made["required"] = [key for key in record.keys if key in record.required]
    if record.name in editor_rules.ALSO:
        made["allOf"] = editor_rules.ALSO[record.name]
    return made


def _of(shape: Any) -> Node:
    """What a shape says; one that refers to a mapping with a name points there."""
    if isinstance(shape, Record):
        return _reference(shape.name)
    if isinstance(shape, FunctionType):
        return dict(_FUNCTIONS[shape])
    return _KINDS[type(shape)](shape)


def _reference(name: str) -> Node:
    # Beside $ref, draft 7 reads nothing else: a description would be lost.
    return {"allOf": [_there(name)]}


def _there(name: str) -> Node:
    return {"$ref": f"#/definitions/{_id(name)}"}


def _id(name: str) -> str:
    return name.replace(" ", "_")


def _text(shape: Text) -> Node:
    made: Node = {"type": "string"}
    if shape.non_empty:
        made["minLength"] = 1
    return made | editor_rules.GRAMMARS.get(shape, {})


def _number(shape: Number) -> Node:
    most = MAX_WHOLE if shape.whole and shape.most is None else shape.most
    bounds = {"exclusiveMinimum": shape.above, "minimum": shape.least, "maximum": most}
    return {"type": "integer" if shape.whole else "number"} | {
        key: bound for key, bound in bounds.items() if bound is not None
    }


def _list(shape: ListOf) -> Node:
    made: Node = {"type": "array", "items": _of(shape.item)}
    return made | ({"minItems": 1} if shape.non_empty else {})


def _map(shape: MapOf) -> Node:
    names = editor_rules.NAMES.get(shape.name_problem)
    return {"type": "object", "additionalProperties": _of(shape.value)} | ({"propertyNames": names} if names else {})


def _placeholder(_: texts.EnvPlaceholder) -> Node:
    return {
        "type": "string",
        "pattern": rf"^\$\{{{patterns.ENV_NAME}\}}$",
        "patternErrorMessage": "An environment variable reference is wanted here, such as ${NAME}, never a secret.",
    }


_KINDS: dict[type, Callable[[Any], Node]] = {
    Text: _text,
    Boolean: lambda _: {"type": "boolean"},
    Number: _number,
    Word: lambda shape: {"type": "string", "enum": list(shape.words)},
    step_shapes.Literal: lambda shape: {"type": "string", "enum": [shape.word]},
    Anything: lambda _: {},
    ListOf: _list,
    MapOf: _map,
    texts.EnvPlaceholder: _placeholder,
    step_shapes.Steps: lambda _: _reference("step"),
}
_SCALAR: Node = {"type": ["string", "number", "boolean"]}
_FUNCTIONS: dict[Any, Node] = {
    agent_shapes.as_it_is: {"type": "string", "enum": list(VERSIONS)},
    agent_shapes.var_default: {
        "type": ["string", "number", "array"],
        "items": {"type": ["string", "number"]},
    },
    tool_shapes.tool: _reference("tool"),
    tool_shapes.body: _reference("body"),
    tool_shapes.equals: {"type": ["string", "number", "boolean", "null"]},
    output_schema.node: _reference(output_schema.NODE.name),
    output_schema.scalar: _SCALAR,
}


def _when(key: str, word: str, then: Node) -> Node:
    return {"if": {"properties": {key: {"const": word}}, "required": [key]}, "then": then}


def _one_of_tools() -> Node:
    """The kind by `action` and nothing else, so that a fault is one of the kind that is meant."""
    kinds = tool_shapes.TOOLS
    return {
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {
                "description": TEXTS["component tool"]["action"],
                "type": "string",
                "enum": list(kinds),
            }
        },
        "allOf": [_when("action", name, _there(kinds[name].name)) for name in kinds],
        "defaultSnippets": editor_rules.SNIPPETS["tool"],
    }


def _one_of_steps() -> Node:
    """The kind by `type`, and an action step when there is an `action`: a step with both may be either."""
    typed, action = step_shapes.STEPS.typed, step_shapes.STEPS.action.name
    has_action: Node = {"required": ["action"]}
    has_kind: Node = {"properties": {"type": {"enum": list(typed)}}, "required": ["type"]}
    either = [_there(action), *(_there(record.name) for record in typed.values())]
    return {
        "type": "object",
        "properties": {
            "step": {"description": TEXTS["action step"]["step"]},
            "type": {"description": TEXTS["action step"]["type"], "anyOf": [{"enum": list(typed)}, {}]},
        },
        "allOf": [
            {
                "if": {"required": ["type"], "not": has_action},
                "then": {
                    "properties": {"type": {"enum": list(typed)}},
                    "allOf": [_when("type", word, _there(record.name)) for word, record in typed.items()],
                },
            },
            {"if": {**has_kind, "allOf": [has_action]}, "then": {"anyOf": either}},
            {"if": {**has_action, "not": has_kind}, "then": _there(action)},
            {"if": {"not": {"anyOf": [has_action, {"required": ["type"]}]}}, "then": _there(action)},
        ],
        "defaultSnippets": editor_rules.SNIPPETS["step"],
    }


def _body() -> Node:
    described = TEXTS["body"]
    return {
        "type": "object",
        "properties": {
            "json": {"description": described["json"], "type": ["object", "array"]},
            "form": {"description": described["form"], "type": "object", "additionalProperties": {"type": "string"}},
            "raw": {"description": described["raw"], "type": "string"},
            "content_type": {"description": described["content_type"], "type": "string", "minLength": 1},
        },
        "additionalProperties": False,
        "allOf": editor_rules.exactly_one(*tool_shapes.ENCODINGS),
        "dependencies": {"content_type": ["raw"]},
    }
