"""Texts that stay as they are written, although they look like more (format 4.1, 15; engine semantics 9, 14.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from workflows.spec import patterns, rules, spans
from workflows.spec.errors import Path, clipped
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json
from workflows.spec.notes import Finding, Subject, finding

_ROOTS: Final = frozenset({"input", "trigger", "vars"})
#: Which texts of a tool are templates; in all but those of an HTTP request the environment is not read.
TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "http_request": ("url", "headers", "query", "body"),
    "slack_post_message": ("channel", "text"),
    "gmail_send": ("to", "subject", "body"),
    "component": ("with",),
}
_MESSAGES: Final[Mapping[str, tuple[str, ...]]] = {**TEMPLATES, "http_request": ()}
_OF_STEPS: Final = ("query", "message")


def placeholders(subject: Subject) -> Iterator[Finding]:
    """`{step.field}` in a 1.1 spec: what 1.0 filled, and 1.1 sends as it is."""
    known = _ROOTS | {step["step"] for _, step in rules.steps(subject.tree)}
    for path, text in _texts(subject, _OF_STEPS, TEMPLATES):
        if not patterns.LEGACY_PLACEHOLDER.search(text):
            continue
        # Inside an expression braces mean something else.
        plain = (part for part in spans.parse(text) if isinstance(part, str))
        found = [one[0] for part in plain for one in patterns.LEGACY_PLACEHOLDER.finditer(part)]
        for name in dict.fromkeys(name for name in found if name[1:-1].partition(".")[0] in known):
            yield finding(
                "placeholder_is_text",
                path,
                f'{clipped(name)} is plain text in version "1.1" and stays as it is; write {{{clipped(name)}}} for the '
                "value",
            )


def unread_references(subject: Subject) -> Iterator[Finding]:
    """In a message or a prompt `${NAME}` is a text like any other (engine semantics 14.1, 15.3)."""
    for path, text in _texts(subject, _OF_STEPS, _MESSAGES):
        name = _unread(text)
        if name is not None:
            way = _way(name)
            what = f"${{{name}}} stays as these characters, for nothing reads it here; {way}"
            yield finding("reference_not_read", path, what)


def _way(name: str) -> str:
    if patterns.variable_is_secret(name):
        return "a secret has no place in a text that is kept and shown, so leave it out"
    return f'a var (version "1.1") with the default ${{{name}}} can bring it'


def templates_in_instructions(subject: Subject) -> Iterator[Finding]:
    """Instructions reach the model exactly as they are written (engine semantics 4.1)."""
    for path, step in rules.steps(subject.tree):
        for at, text in _under(step, path, ("instructions",)):
            name, span = _unread(text), next(spans.spans(text), None)
            if name is not None or span is not None:
                found = f"${{{name}}}" if span is None else f"{{{{{clipped(span.source)}}}}}"
                what = (
                    f"{found} stays as these characters, for the model is told instructions as written; use the query"
                )
                yield finding("reference_not_read", at, what)


def _unread(text: str) -> str | None:
    """The first name that looks like a reference to the environment, outside of expressions."""
    if "${" in text:
        for part in spans.parse(text):
            for found in patterns.ENV_REFERENCE.finditer(part) if isinstance(part, str) else ():
                if not found["escaped"]:
                    return clipped(found["name"])
    return None


def defaults(subject: Subject) -> Iterator[Finding]:
    """Text around a reference is an ordinary literal (format 4.1)."""
    for name, declaration in subject.tree.get("vars", {}).items():
        default = declaration.get("default")
        if not isinstance(default, str) or patterns.ENV_PLACEHOLDER.fullmatch(default):
            continue
        if any(not found["escaped"] for found in patterns.ENV_REFERENCE.finditer(default)):
            yield finding(
                "default_not_expanded",
                ("vars", name, "default"),
                "only a default that is exactly ${NAME} is read from the environment; this one is used as the text "
                "that it is",
            )


def _texts(
    subject: Subject, of_steps: tuple[str, ...], of_tools: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Path, str]]:
    for path, step in rules.steps(subject.tree):
        yield from _under(step, path, of_steps)
    for path, tool in rules.tools(subject.tree):
        yield from _under(tool, path, of_tools[tool["action"]])


def _under(part: dict[str, Any], path: Path, keys: tuple[str, ...]) -> Iterator[tuple[Path, Json]]:
    for key in keys:
        if key in part:
            yield from texts(part[key], (*path, key))
