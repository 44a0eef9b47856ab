"""What a spec file may look like outside its tools and steps (format 3 to 10)."""

from __future__ import annotations

from typing import Any

from workflows.spec import patterns, texts
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import (
    Faults,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Word,
    is_number,
    kind_of,
)

LIST_ITEMS = "string"


def var_default(value: Json, path: Path, faults: Faults) -> Json:
    """A default of any var type: text, a number, or a list of these."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str) and not is_number(item):
            where = "a list holding " if isinstance(value, list) else ""
            found = "an infinite number" if isinstance(item, float) else kind_of(item)
            faults.hard(path, f'"default" must be a number, a string or a list of them, not {where}{found}')
            break
    return value


def _default_fits(declaration: dict[str, Any], path: Path, faults: Faults) -> None:
    kind, default = declaration["type"], declaration.get("default")
    if "items" in declaration and kind != "list":
        faults.soft((*path, "items"), f'"items" only applies to a "list", and this var is a {kind}')
    if "default" not in declaration or (isinstance(default, str) and patterns.ENV_PLACEHOLDER.fullmatch(default)):
        return
    items = declaration.get("items", LIST_ITEMS)
    wanted = f"list of {items}s" if kind == "list" else kind
    if not _fits(default, kind, items):
        faults.soft((*path, "default"), f'"default" must be a "{wanted}", or a reference such as ${{ENV_VAR}}')


def _fits(default: Json, kind: str, items: str) -> bool:
    if kind == "list":
        return isinstance(default, list) and all(_fits(item, items, items) for item in default)
    return isinstance(default, str) if kind == "string" else is_number(default)


VAR = Record(
    name="var",
    keys={
        "type": Word(words=("number", "string", "list")),
        "items": Word(words=("string", "number")),
        "default": var_default,
        "description": Text(),
    },
    required=frozenset({"type"}),
    closed=True,
    rules=(_default_fits,),
)


def var_name_problem(name: str) -> str | None:
    if name == "__proto__":
        return '"__proto__" is not a valid var name'
    if patterns.IDENTIFIER.fullmatch(name):
        return None
    return f'"{clipped(name)}" is not a valid var name: it starts with a letter or "_", then letters, digits and "_"'


def _key_for_cloud(block: dict[str, Any], path: Path, faults: Faults) -> None:
    if "api_key" not in block and block["provider"] != "ollama":
        message = f'"api_key" is required for the provider {block["provider"]}: a reference such as ${{NAME}}'
        faults.soft((*path, "api_key"), message)


MODEL = Record(
    name="model",
    keys={
        "provider": Word(words=("anthropic", "openai", "ollama", "openrouter")),
        "name": texts.NON_EMPTY,
        "api_key": texts.EnvPlaceholder(),
        "base_url": texts.URL,
        "timeout_ms": Number(above=0, whole=True),
    },
    required=frozenset({"provider", "name"}),
    rules=(_key_for_cloud,),
)
GUARDRAILS = Record(
    name="guardrails",
    keys={"confidence_threshold": Number(least=0, most=1), "fallback_action": Word(words=("escalate_to_human",))},
)
KNOWLEDGE = Record(
    name="knowledge",
    keys={"type": Word(words=("pdf", "url", "text")), "source": texts.NON_EMPTY},
    required=frozenset({"type", "source"}),
)
TRIGGER = Record(name="trigger", keys={"type": Word(words=("webhook",))}, required=frozenset({"type"}))
NOTIFIER = Record(
    name="notifier",
    keys={"type": Word(words=("slack",)), "token": texts.EnvPlaceholder(), "channel": texts.NON_EMPTY},
    required=frozenset({"type", "token", "channel"}),
)


def agent(tool: Shape, step: Shape) -> Record:
    """The shape of an agent with these tools and steps."""
    return Record(
        name="agent",
        keys={
            "id": texts.NON_EMPTY,
            "name": texts.NON_EMPTY,
            "role": texts.NON_EMPTY,
            "goal": texts.NON_EMPTY,
            "model": MODEL,
            "tools": ListOf(item=tool),
            "guardrails": GUARDRAILS,
            "knowledge_base": ListOf(item=KNOWLEDGE),
            "trigger": TRIGGER,
            "approval_notifier": NOTIFIER,
            "workflow": ListOf(item=step, non_empty=True),
        },
        required=frozenset({"id", "name", "role", "goal", "workflow"}),
    )


def document(agent: Shape) -> Record:
    """The shape of a whole file; the version was checked before."""
    return Record(
        name="document",
        keys={"version": as_it_is, "vars": MapOf(value=VAR), "agent": agent},
        required=frozenset({"agent"}),
    )


def as_it_is(value: Json, _path: Path, _faults: Faults) -> Json:
    return value
