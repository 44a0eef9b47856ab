"""Secrets that an expression would write out: a var is data, also where its default reads a secret (ST-5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from workflows.spec import patterns, rules, spans
from workflows.spec.errors import Path, clipped, listed
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json
from workflows.spec.notes import Finding, Subject, finding
from workflows.spec.text_notes import TEMPLATES
from workflows.spec.vars_read import ALL, vars_read

#: What a step keeps or shows, by its type: the texts that are templates.
_OF_STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "approval": ("message",),
    "once": ("key",),
    "open": ("key", "value"),
    "close": ("key",),
}
#: Of a poll, whose expressions stand without braces: its items start runs, its keys and cursor are kept.
_OF_POLLS: Final = ("items", "key", "cursor")


def written_secrets(subject: Subject) -> Iterator[Finding]:
    """A text that is stored or shown, and reads a var whose default is a secret of the environment."""
    secrets = _secrets(subject.tree)
    if not secrets:
        return
    for path, sources in _kept(subject.tree):
        read = {name for source in sources for name in vars_read(source)}
        found = [name for name in secrets if name in read or ALL in read]
        if found:
            yield finding("secret_var_written", path, partial(_message, found[0], secrets[found[0]], found[1:]))


def _message(name: str, variable: str, more: list[str]) -> str:
    also = f" (and of {listed(f'vars.{clipped(other)}' for other in more)})" if more else ""
    return (
        f"the value of vars.{clipped(name)}{also} is kept and shown in clear here, and ${{{clipped(variable)}}} looks "
        f"like a secret; leave it out, and write ${{{clipped(variable)}}} in the tool's call that needs it"
    )


def _secrets(tree: dict[str, Json]) -> dict[str, str]:
    """The vars whose default is exactly `${NAME}` with a name that looks like a secret, each with that name."""
    found: dict[str, str] = {}
    for name, declaration in tree.get("vars", {}).items():
        default = declaration.get("default")
        reference = patterns.ENV_PLACEHOLDER.fullmatch(default) if isinstance(default, str) else None
        if reference is not None and patterns.variable_is_secret(reference[1]):
            found[name] = reference[1]
    return found


def _kept(tree: dict[str, Json]) -> Iterator[tuple[Path, Iterable[str]]]:
    """Each text whose value is stored or shown, with its expressions."""
    trigger = tree["agent"].get("trigger", {})
    at: Path = ("agent", "trigger")
    # A trigger's expressions are given the vars only where they name them.
    if patterns.NAMES_VARS.search(trigger.get("dedupe", "")):
        yield from _templates(trigger, at, ("dedupe",))
    if trigger.get("type") == "poll":
        for key in _OF_POLLS:
            if patterns.NAMES_VARS.search(trigger.get(key, "")):
                yield (*at, key), (trigger[key],)
    for path, tool in rules.tools(tree):
        # An HTTP call is shown to whoever is asked; a message is shown wherever it goes.
        if tool["action"] != "http_request" or tool.get("requires_approval") or "approval" in tool:
            yield from _templates(tool, path, TEMPLATES[tool["action"]])
    for path, step in rules.steps(tree):
        if "action" not in step:
            yield from _templates(step, path, _OF_STEPS.get(step["type"], ()))


def _templates(part: dict[str, Any], path: Path, keys: tuple[str, ...]) -> Iterator[tuple[Path, Iterable[str]]]:
    for key in keys:
        for at, text in texts(part[key], (*path, key)) if key in part else ():
            if "{{" in text:
                yield at, [span.source for span in spans.spans(text)]
