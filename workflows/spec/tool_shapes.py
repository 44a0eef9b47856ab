"""What a tool may look like (format 11 and 18.1)."""

from __future__ import annotations

from typing import Any

from workflows.spec import patterns, texts
from workflows.spec.errors import Path
from workflows.spec.model import Json
from workflows.spec.shapes import (
    Anything,
    Boolean,
    Faults,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Word,
    one_of,
    wrong_type,
)

_COMMON: dict[str, Shape] = {
    "name": texts.NON_EMPTY,
    "action": texts.PLAIN,
    "requires_approval": Boolean(),
    "extract": texts.PLAIN,
}
_NAMED = frozenset({"name", "action"})

HEADERS = MapOf(value=texts.PLAIN, name_problem=texts.header_name_problem, rules=(texts.headers_are_references,))
PARAMETERS = MapOf(
    value=texts.PLAIN, name_problem=texts.parameter_name_problem, rules=(texts.parameters_are_references,)
)
_FORM = MapOf(value=texts.PLAIN)
_JSON = Anything()
ENCODINGS = ("json", "form", "raw")


def body(value: Json, path: Path, faults: Faults) -> Json:
    """A closed mapping with exactly one of the encodings, each with a value of its kind."""
    if not isinstance(value, dict):
        wrong_type("a mapping with exactly one of json, form or raw", value, path, faults)
        return value
    encodings = [key for key in value if key in ENCODINGS]
    problem = None
    if len(encodings) != 1:
        problem = f"it has {' and '.join(encodings) or 'none'}"
    elif unknown := [key for key in value if key not in (*ENCODINGS, "content_type")]:
        problem = f"it does not know {', '.join(unknown)[:120]}"
    elif "content_type" in value and encodings != ["raw"]:
        problem = "content_type goes with raw only"
    else:
        problem = _encoding_problem(encodings[0], value[encodings[0]])
    if problem is None and not isinstance(value.get("content_type", ""), str):
        problem = "content_type must be a string"
    if problem:
        faults.hard(path, f'"body" must have exactly one of json, form or raw: {problem}')
    elif value.get("content_type") == "":
        faults.soft((*path, "content_type"), '"content_type" must not be empty')
    elif encodings == ["json"]:
        _JSON(value["json"], (*path, "json"), faults)
    return value


def _encoding_problem(encoding: str, value: Json) -> str | None:
    match encoding:
        case "json":
            return None if isinstance(value, (dict, list)) else "json must be a mapping or a list"
        case "form":
            inside = Faults()
            _FORM(value, ("form",), inside)
            return "form must be a mapping of names to strings" if inside.found else None
        case _:
            return None if isinstance(value, str) else "raw must be a string"


def equals(value: Json, path: Path, faults: Faults) -> Json:
    """A value that a response may equal: text, number, boolean or null."""
    if isinstance(value, (dict, list)):
        wrong_type("a string, a number, a boolean or null", value, path, faults)
        return value
    return _JSON(value, path, faults)


def _one_condition(rule: dict[str, Any], path: Path, faults: Faults) -> None:
    given = [key for key in ("exists", "equals", "matches") if key in rule]
    if len(given) != 1:
        found = ", ".join(given) or "none"
        faults.soft(path, f'a failure rule has exactly one of "exists", "equals" and "matches"; this one has {found}')


FAILURE_RULE = Record(
    name="failure rule",
    keys={
        "path": texts.RESPONSE_PATH,
        "exists": Boolean(),
        "equals": equals,
        "matches": texts.REGEX,
        "message_path": texts.RESPONSE_PATH,
        "retryable": Boolean(),
    },
    required=frozenset({"path"}),
    closed=True,
    rules=(_one_condition,),
)
RESPONSE = Record(
    name="response", keys={"mode": Word(words=("json", "text", "bytes"))}, required=frozenset({"mode"}), closed=True
)
PACE = Record(name="pace", keys={"rps": Number(above=0, most=1000)}, required=frozenset({"rps"}), closed=True)
RETRY = Record(
    name="retry",
    keys={
        "max": Number(least=1, most=10, whole=True),
        "backoff": Word(words=("fixed", "exponential")),
        "base_ms": Number(above=0, whole=True),
        "max_delay_ms": Number(above=0, whole=True),
    },
    required=frozenset({"max"}),
    closed=True,
)


def _http_rules(tool: dict[str, Any], path: Path, faults: Faults) -> None:
    if tool["method"] == "GET" and "body" in tool:
        faults.soft((*path, "body"), 'a "GET" request cannot send a "body"')
    mode = tool.get("response", {}).get("mode", "json")
    if mode != "json":
        for key in ("failure_when", "extract"):
            if key in tool:
                faults.soft((*path, key), f'"{key}" needs the response mode "json"; it is "{mode}"')


HTTP = Record(
    name="http_request tool",
    keys={
        **_COMMON,
        "method": Word(words=("GET", "POST", "PUT", "PATCH", "DELETE")),
        "url": texts.NON_EMPTY,
        "headers": HEADERS,
        "query": PARAMETERS,
        "body": body,
        "response": RESPONSE,
        "failure_when": ListOf(item=FAILURE_RULE),
        "pace": PACE,
        "retry": RETRY,
    },
    required=_NAMED | {"method", "url"},
    rules=(_http_rules,),
)
SLACK = Record(
    name="slack_post_message tool",
    keys={**_COMMON, "token": texts.EnvPlaceholder(), "channel": texts.NON_EMPTY, "text": texts.NON_EMPTY},
    required=_NAMED | {"token", "channel", "text"},
)
GMAIL = Record(
    name="gmail_send tool",
    keys={
        **_COMMON,
        "token": texts.EnvPlaceholder(),
        "to": texts.NON_EMPTY,
        "subject": texts.NON_EMPTY,
        "body": texts.NON_EMPTY,
    },
    required=_NAMED | {"token", "to", "subject", "body"},
)
COMPONENT = Record(
    name="component tool",
    keys={
        **_COMMON,
        "use": texts.COMPONENT,
        "op": texts.NON_EMPTY,
        "with": MapOf(value=_JSON),
        "config": MapOf(value=Text()),
        "secrets": MapOf(value=texts.EnvPlaceholder()),
    },
    required=_NAMED | {"use", "op"},
    closed=True,
)
TOOLS: dict[str, Record] = {
    "http_request": HTTP,
    "slack_post_message": SLACK,
    "gmail_send": GMAIL,
    "component": COMPONENT,
}


def tool(value: Json, path: Path, faults: Faults) -> Json:
    """A tool of the kind that its `action` names."""
    return tool_of(TOOLS, value, path, faults)


def tool_of(kinds: dict[str, Record], value: Json, path: Path, faults: Faults) -> Json:
    """The same, where a version has kinds of its own."""
    if not isinstance(value, dict):
        wrong_type("a mapping", value, path, faults)
        return value
    action = value.get("action")
    if not isinstance(action, str) or action not in kinds:
        found = "it is missing" if "action" not in value else "this is none of them"
        faults.hard((*path, "action"), f'"action" must be {one_of(kinds)}; {found}')
        return value
    return kinds[action](value, path, faults)


def config_is_not_secret(tool: dict[str, Any], path: Path, faults: Faults) -> None:
    """A component's config must not read a variable that looks like a secret."""
    for key, value in tool.get("config", {}).items():
        reference = patterns.ENV_PLACEHOLDER.fullmatch(value)
        if reference and patterns.variable_is_secret(reference[1]):
            faults.soft(
                (*path, "config", key),
                f'config "{key}" reads {reference[1]}, which looks like a secret; config is not secret, '
                'give it under "secrets" instead',
            )
