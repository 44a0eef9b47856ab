"""What the editor's schema says besides the shapes: grammars of texts, rules between keys, and snippets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workflows.spec import patterns, policy_shapes, texts
from workflows.spec.shapes import Text

_REFERENCE = rf"\$\{{{patterns.ENV_NAME}\}}"
_PATH = r"[A-Za-z0-9_$-]+"
_QUOTED = r"""\["(?:[^"\\]|\\[\s\S])*"\]"""
_INDEX = r"\[[0-9]+\]"

#: Of texts that the shapes check with a function.
GRAMMARS: dict[Text, dict[str, Any]] = {
    texts.URL: {
        "pattern": "^[A-Za-z][A-Za-z0-9+.-]*:",
        "patternErrorMessage": "An absolute URL is wanted here, such as http://localhost:11434/v1.",
    },
    texts.COMPONENT: {
        "pattern": f"^{patterns.COMPONENT.pattern}$",
        "patternErrorMessage": "An exact version is wanted here, as in namespace/name@1.2.3.",
    },
    texts.RESPONSE_PATH: {
        "pattern": rf"^(?:{_PATH}|{_QUOTED}|{_INDEX})(?:\.{_PATH}|{_QUOTED}|{_INDEX})*$",
        "patternErrorMessage": 'A path is wanted here: keys joined by dots, ["a key"] and [0].',
    },
    texts.REGEX: {"format": "regex"},
    policy_shapes.TOOL_CALL: {
        "pattern": f"^{policy_shapes.EXECUTE.pattern}$",
        "patternErrorMessage": "execute_tool(NAME) is wanted here.",
    },
}
#: Of the names of a mapping, by the function that checks them.
NAMES: dict[Callable[[str], str | None], dict[str, Any]] = {
    texts.header_name_problem: {"pattern": f"^{patterns.HEADER_NAME.pattern}$"},
    texts.parameter_name_problem: {"minLength": 1},
    texts.identifier_problem: {"pattern": f"^{patterns.IDENTIFIER.pattern}$"},
}

_ACTION_KEYS_OF_1_1 = ("output_schema", "instructions", "model", "temperature")


def _if(key: str, words: list[str], then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {key: {"enum": words}}, "required": [key]}, "then": then}


def _default_is(kind: str, default: dict[str, Any]) -> dict[str, Any]:
    placeholder = {"type": "string", "pattern": f"^{_REFERENCE}$"}
    return _if("type", [kind], {"properties": {"default": {"anyOf": [default, placeholder]}}})


def _credentials(words: Iterable[str], names: Iterable[str]) -> dict[str, Any]:
    """Names that look like credentials, in any case, need a reference in their value."""
    name = "|".join((*map(_any_case, words), *(f"^{_any_case(name)}$" for name in sorted(names))))
    reference = {
        "type": "string",
        "pattern": _REFERENCE,
        "patternErrorMessage": "This looks like a credential: its value must hold an environment reference, ${NAME}.",
    }
    return {"patternProperties": {name: reference}}


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


def _fits(type_: str) -> dict[str, Any]:
    return _if("type", [type_], {"properties": {"default": {"type": type_}, "enum": {"items": {"type": type_}}}})


_GATE = {
    "if": {"properties": {"confidence_gate": {"const": True}}, "required": ["confidence_gate", "output_schema"]},
    "then": {
        "properties": {
            "output_schema": {
                "required": ["required"],
                "properties": {
                    "required": {"contains": {"const": "confidence"}},
                    "properties": {
                        "required": ["confidence"],
                        "properties": {
                            "confidence": {"properties": {"type": {"enum": ["number", "integer"]}, "default": False}}
                        },
                    },
                },
            }
        }
    },
}
_STEPS_OF_1_0 = {
    "items": {"if": {"required": ["action"]}, "then": {"properties": dict.fromkeys(_ACTION_KEYS_OF_1_1, False)}}
}


def _unreserved(*names: str) -> dict[str, Any]:
    """Steps whose names are not these."""
    said = f"{', '.join(names[:-1])} and {names[-1]} are reserved: a step may not be called that."
    name = {"pattern": f"^(?!(?:{'|'.join(names)})$)", "patternErrorMessage": said}
    return {"items": {"properties": {"step": name}}}


_STEPS_OF_1_1 = _unreserved("trigger", "input", "vars")
_STEPS_OF_1_2 = _unreserved("trigger", "input", "vars", "decision", "action", "output", "cursor")


def _workflow(steps: dict[str, Any]) -> dict[str, Any]:
    return {"agent": {"properties": {"workflow": steps}}}


def exactly_one(*keys: str) -> list[dict[str, Any]]:
    """One of these keys and no two, said so that an editor names the key that is too many or missing."""
    others = [(key, dict.fromkeys(keys[at + 1 :], False)) for at, key in enumerate(keys)]
    return [
        {"anyOf": [{"required": [key]} for key in keys]},
        *({"if": {"required": [key]}, "then": {"properties": refused}} for key, refused in others if refused),
    ]


#: What single keys say besides their shape, by the names of mapping and key.
BESIDES: dict[str, dict[str, Any]] = {
    "document.vars": {"propertyNames": {"pattern": f"^{patterns.IDENTIFIER.pattern}$"}},
    "http_request tool.headers": _credentials(patterns.CREDENTIAL_WORDS, patterns.CREDENTIAL_HEADERS),
    "http_request tool.query": _credentials(patterns.CREDENTIAL_PARAMETER_WORDS, patterns.CREDENTIAL_PARAMETERS),
    "action step.output_schema": {"properties": {"type": {"const": "object"}}},
}
#: Rules between the keys of a mapping, by its name.
ALSO: dict[str, list[dict[str, Any]]] = {
    "document": [
        _if("version", ["1.0"], {"properties": {"vars": False, **_workflow(_STEPS_OF_1_0)}}),
        _if("version", ["1.1"], {"properties": _workflow(_STEPS_OF_1_1)}),
    ],
    "var": [
        _default_is("number", {"type": "number"}),
        _default_is("string", {"type": "string"}),
        _default_is("list", {"type": "array"}),
        _if("type", ["number", "string"], {"properties": {"items": False}}),
    ],
    "model": [_if("provider", ["anthropic", "openai", "openrouter"], {"required": ["api_key"]})],
    "http_request tool": [
        _if("method", ["GET"], {"properties": {"body": False}}),
        {
            "if": {
                "properties": {"response": {"properties": {"mode": {"enum": ["text", "bytes"]}}, "required": ["mode"]}},
                "required": ["response"],
            },
            "then": {"properties": {"failure_when": False, "extract": False}},
        },
    ],
    "webhook trigger": [{"dependencies": {"dedupe_ttl": ["dedupe"]}}],
    "failure rule": exactly_one("exists", "equals", "matches"),
    "action step": [_GATE],
    "output schema": [
        _if("type", ["object"], {"required": ["properties"], "properties": {"properties": {"minProperties": 1}}}),
        _if("type", ["array"], {"required": ["items"]}),
        *map(_fits, ("string", "number", "integer", "boolean")),
        _if("type", ["object", "array"], {"properties": {"default": False, "enum": False}}),
    ],
}
DOCUMENT_OF_1_2: list[dict[str, Any]] = [{"properties": _workflow(_STEPS_OF_1_2)}]

_AGENT = {
    "id": "${1:my-workflow}",
    "name": "${2:My workflow}",
    "role": "${3:Clerk}",
    "goal": "${4:What it is for.}",
    "workflow": [{"step": "${5:first}", "action": "${6:summarise}"}],
}
#: What an editor offers to fill in.
SNIPPETS: dict[str, list[dict[str, Any]]] = {
    "document": [
        {"label": "a new workflow", "description": "A small spec of 1.1.", "body": {"version": "1.1", "agent": _AGENT}}
    ],
    "tool": [
        {
            "label": "http_request",
            "description": "Call an HTTP API.",
            "body": {"name": "${1:look_up}", "action": "http_request", "method": "${2:GET}", "url": "${3:https://}"},
        },
        {
            "label": "slack_post_message",
            "description": "Post to Slack.",
            "body": {
                "name": "${1:tell}",
                "action": "slack_post_message",
                "token": "\\${SLACK_BOT_TOKEN}",
                "channel": "${2:general}",
                "text": "${3:Done.}",
            },
        },
    ],
    "step": [
        {
            "label": "action step",
            "description": "Ask the model.",
            "body": {"step": "${1:name}", "action": "${2:decide}"},
        },
        {
            "label": "tool step",
            "description": "Call a tool.",
            "body": {"step": "${1:name}", "type": "tool", "tool": "${2:tool}"},
        },
        {
            "label": "condition step",
            "description": "Do one of two things.",
            "body": {
                "step": "${1:name}",
                "type": "condition",
                "if": "${2:trigger.amount > 100}",
                "then": "${3:request_human_approval}",
                "else": "execute_tool(${4:tool})",
            },
        },
        {
            "label": "approval step",
            "description": "Ask a person.",
            "body": {"step": "${1:name}", "type": "approval", "message": "${2:May this go on?}"},
        },
    ],
}
