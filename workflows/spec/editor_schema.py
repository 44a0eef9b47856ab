"""The JSON Schema for editors (format 19), made out of the shapes that loading itself uses.

Draft 7, which is what the editors' YAML server reads best, with that server's own words for messages and snippets. It
is an approximation: where it differs from loading, loading decides. It accepts every file that loads, but for what
`docs/specs.md` lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeAlias

from workflows.spec import (
    agent_shapes,
    durations,
    editor_rules,
    output_schema,
    patterns,
    policy_shapes,
    step_shapes,
    strict,
    texts,
    tool_shapes,
    trigger_shapes,
)
from workflows.spec.key_texts import TEXTS
from workflows.spec.key_texts12 import TEXTS as TEXTS_12
from workflows.spec.shapes import MAX_WHOLE, Anything, Boolean, ListOf, MapOf, Number, Record, Text, Word
from workflows.spec.versions import VERSIONS

Node: TypeAlias = dict[str, Any]

#: On keys that nothing reads: a warning in the editor, and no reason to refuse.
_UNREAD: Node = {"deprecationMessage": "There is no such key here; nothing reads it."}


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def schema() -> Node:
    """The whole schema, as JSON data: one for 1.0 and 1.1, and one for 1.2, told apart by the version."""
    document = agent_shapes.document(agent_shapes.agent(tool_shapes.tool, step_shapes.STEPS))
    made = {_id(record): _record(record) for record in (*_OLD.values(), *_inside(strict.DOCUMENT), document)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "AgentSpec 1.0, 1.1 and 1.2",
        "description": "A workflow that Kampong runs. Loading the file decides where this schema is less exact.",
        "type": "object",
        "required": ["version", "agent"],
        **_when("version", "1.2", _there(strict.DOCUMENT)),
        "else": _there(document),
        "defaultSnippets": editor_rules.SNIPPETS["document"],
        "definitions": {
            **dict(sorted(made.items())),
            "tool": _one_of_tools(tool_shapes.TOOLS),
            "tool_1.2": _one_of_tools(strict.TOOLS),
            "step": _one_of_steps(step_shapes.STEPS),
            "step_1.2": _one_of_steps(strict.STEPS),
            "trigger_1.2": _by_type(trigger_shapes.TRIGGERS),
            "channel_1.2": _by_type({"slack": policy_shapes.SLACK_CHANNEL, "email": policy_shapes.EMAIL_CHANNEL}),
            "body": _body(),
        },
    }


#: The mappings of 1.0 and 1.1, by name.
_OLD: dict[str, Record] = {
    record.name: record
    for record in (
        agent_shapes.VAR, agent_shapes.agent(tool_shapes.tool, step_shapes.STEPS), agent_shapes.MODEL,
        agent_shapes.GUARDRAILS, agent_shapes.KNOWLEDGE, agent_shapes.TRIGGER, agent_shapes.NOTIFIER,
        *tool_shapes.TOOLS.values(), tool_shapes.FAILURE_RULE, tool_shapes.RESPONSE, tool_shapes.PACE,
        tool_shapes.RETRY, *step_shapes.STEPS.typed.values(), step_shapes.STEPS.action, output_schema.NODE,
    )
}  # fmt: skip


def _inside(shape: Any) -> Iterator[Record]:
    """The mapping, and every one in it."""
    match shape:
        case Record():
            yield shape
            for inner in shape.keys.values():
                yield from _inside(inner)
        case ListOf():
            yield from _inside(shape.item)
        case MapOf():
            yield from _inside(shape.value)
        case step_shapes.Steps():
            for inner in (*shape.typed.values(), shape.action):
                yield from _inside(inner)
        case FunctionType():
            for inner in _RECORDS.get(shape, ()):
                yield from _inside(inner)


def _record(record: Record) -> Node:
    properties = {
        key: {
            "description": _told(record, key),
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
    also = editor_rules.DOCUMENT_OF_1_2 if record is strict.DOCUMENT else editor_rules.ALSO.get(record.name)
    if also:
        made["allOf"] = also
    return made


def _told(record: Record, key: str) -> str:
    """What the key is for. Where 1.2 gives a mapping of 1.1 more keys, the others keep their texts."""
    old = TEXTS.get(record.name, {})
    return (
        old[key]
        if key in old and record is not strict.STEPS.action
        else TEXTS_12.get(record.name, {}).get(key) or old[key]
    )


def _of(shape: Any) -> Node:
    """What a shape says; one that refers to a mapping with a name points there."""
    if isinstance(shape, Record):
        return _reference(shape)
    if isinstance(shape, FunctionType):
        return dict(_FUNCTIONS[shape])
    return _KINDS[type(shape)](shape)


def _reference(to: Record | str) -> Node:
    # Beside $ref, draft 7 reads nothing else: a description would be lost.
    return {"allOf": [_there(to)]}


def _there(to: Record | str) -> Node:
    return {"$ref": f"#/definitions/{to if isinstance(to, str) else _id(to)}"}


def _id(record: Record) -> str:
    """A mapping that 1.2 closes or adds has a name of its own."""
    own = record.name.replace(" ", "_")
    is_old = _OLD.get(record.name) == record or (record.name == "document" and not record.closed)
    return own if is_old else f"{own}_1.2"


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
    step_shapes.Steps: lambda shape: _reference("step_1.2" if shape is strict.STEPS else "step"),
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
    output_schema.node: _reference(output_schema.NODE),
    output_schema.scalar: _SCALAR,
    durations.duration: {
        "type": "string",
        "pattern": "^[0-9]{1,9}[smhdw]$",
        "patternErrorMessage": "A number with a unit is wanted here: 30s, 15m, 4h, 2d or 1w.",
    },
    strict.tool: _reference("tool_1.2"),
    trigger_shapes.trigger: _reference("trigger_1.2"),
    policy_shapes.channel: _reference("channel_1.2"),
    policy_shapes.form: {**_reference(output_schema.NODE), "properties": {"type": {"const": "object"}}},
    policy_shapes.POLICY_KEYS["on_expire"]: {
        "type": "string",
        "pattern": f"^(?:{'|'.join(policy_shapes.ON_EXPIRE)}|{policy_shapes.EXECUTE.pattern})$",
        "patternErrorMessage": "expire, reject, fail or execute_tool(NAME) is wanted here.",
    },
}
#: The mappings that a function chooses among.
_RECORDS: dict[Any, tuple[Record, ...]] = {
    strict.tool: tuple(strict.TOOLS.values()),
    trigger_shapes.trigger: tuple(trigger_shapes.TRIGGERS.values()),
    policy_shapes.channel: (policy_shapes.SLACK_CHANNEL, policy_shapes.EMAIL_CHANNEL),
}


def _when(key: str, word: str, then: Node) -> Node:
    return {"if": {"properties": {key: {"const": word}}, "required": [key]}, "then": then}


def _by_type(kinds: dict[str, Record]) -> Node:
    """The kind by `type` and nothing else."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"description": "Which kind it is.", "type": "string", "enum": list(kinds)}},
        "allOf": [_when("type", name, _there(record)) for name, record in kinds.items()],
    }


def _one_of_tools(kinds: dict[str, Record]) -> Node:
    """The kind by `action` and nothing else, so that a fault is one of the kind that is meant."""
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
        "allOf": [_when("action", name, _there(kinds[name])) for name in kinds],
        "defaultSnippets": editor_rules.SNIPPETS["tool"],
    }


def _one_of_steps(steps: step_shapes.Steps) -> Node:
    """The kind by `type`, and an action step when there is an `action`: a step with both may be either."""
    typed, action = steps.typed, steps.action
    has_action: Node = {"required": ["action"]}
    has_kind: Node = {"properties": {"type": {"enum": list(typed)}}, "required": ["type"]}
    either = [_there(action), *(_there(record) for record in typed.values())]
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
                    "allOf": [_when("type", word, _there(record)) for word, record in typed.items()],
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
