"""Values that load and do not do what they seem to (format 7, 11, 21; engine semantics 5 and 14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from workflows.spec import patterns, rules
from workflows.spec.errors import Path, clipped
from workflows.spec.expression_rules import texts
from workflows.spec.notes import Finding, Subject, finding

# Tools --------------------------------------------------------------------------------------------------------

_MOST_READ: Final = 1000
_SEGMENT: Final = re.compile(r'\.?([A-Za-z0-9_$-]+)|\["((?:[^"\\]|\\.)*)"\]|\[([0-9]+)\]', re.DOTALL)


def extracts(subject: Subject) -> Iterator[Finding]:
    """`extract` is keys joined by dots; brackets and quotes are not understood (engine semantics 14.3)."""
    for path, tool in rules.tools(subject.tree):
        extract = tool.get("extract", "")
        if extract and _is_suspicious(extract):
            yield finding(
                "extract_not_dotted",
                (*path, "extract"),
                f'"{clipped(extract)}" finds nothing, unless a key is spelled so: extract is keys and positions '
                f"joined by dots{_dotted(extract)}",
            )


def _is_suspicious(extract: str) -> bool:
    return any(mark in extract for mark in "[]{}()*'\"") or "" in extract.split(".") or extract.startswith("$.")


def _dotted(extract: str) -> str:
    """`; write "parcels.0.status"` where the text is a path of another spelling and its keys hold no dots."""
    path = extract.removeprefix("$.").removeprefix("$")
    if len(path) > _MOST_READ or not patterns.RESPONSE_PATH.fullmatch(path):
        return ", such as parcels.0.status"
    keys = ["".join(found) for found in _SEGMENT.findall(path)]
    if any("." in key or "\\" in key for key in keys):
        return "; a key with a dot in it cannot be written, so leave extract out and read it in an expression"
    return f'; write "{clipped(".".join(keys))}"'


def escaped_credentials(subject: Subject) -> Iterator[Finding]:
    """`$${TOKEN}` passes for a reference at load and is sent as the text `${TOKEN}` (format 21.6)."""
    for path, tool in rules.tools(subject.tree):
        if tool["action"] != "http_request":
            continue
        for part, looks_like in (
            ("headers", patterns.header_is_credential),
            ("query", patterns.parameter_is_credential),
        ):
            for name, value in tool.get(part, {}).items():
                if looks_like(name) and all(found["escaped"] for found in patterns.ENV_REFERENCE.finditer(value)):
                    yield finding(
                        "escaped_credential",
                        (*path, part, name),
                        f"{clipped(name)} holds no reference to the environment: $${{NAME}} is sent as the text "
                        "${NAME}; write it with one dollar",
                    )


# Guardrails ---------------------------------------------------------------------------------------------------


def guardrails(subject: Subject) -> Iterator[Finding]:
    rails = subject.tree["agent"].get("guardrails", {})
    threshold = rails.get("confidence_threshold")
    gates = [(path, step) for path, step in rules.steps(subject.tree) if step.get("confidence_gate")]
    if threshold is None:
        yield from _unchecked(subject, gates)
        return
    at: Path = ("agent", "guardrails", "confidence_threshold")
    if not gates:
        yield finding(
            "guardrail_without_gate",
            at,
            "no step has confidence_gate: true, so the threshold checks nothing; set it on the steps that it is for",
        )
    elif "fallback_action" not in rails and threshold > 0:
        yield finding(
            "guardrail_without_action",
            at,
            "a confidence below the threshold fails the run, because there is no fallback_action; to ask a person "
            "instead, write fallback_action: escalate_to_human",
        )
    for path, step in gates:
        most = _most_confident(step)
        if most is not None and most < threshold:
            yield finding(
                "gate_never_confident",
                (*path, "confidence_gate"),
                f"its output_schema lets the confidence be {most} at most, which is below the threshold {threshold}: "
                "the guardrail fires every time; raise the one or lower the other",
            )


def _unchecked(subject: Subject, gates: list[tuple[Path, dict[str, Any]]]) -> Iterator[Finding]:
    """Gates that no threshold looks at, and of whose answer nothing is read: a gate also gives a step its fields."""
    read = _read_steps(subject) if gates else frozenset()
    for path, step in gates:
        if step["step"] not in read:
            yield finding(
                "gate_without_threshold",
                (*path, "confidence_gate"),
                "the confidence is asked for and nothing looks at it: set guardrails.confidence_threshold and "
                "fallback_action, or remove confidence_gate",
            )


def _read_steps(subject: Subject) -> frozenset[str]:
    """The names of which a condition or a template reads a field."""
    conditions = [step["if"] for _, step in rules.steps(subject.tree) if "if" in step]
    parts = (*rules.steps(subject.tree), *rules.tools(subject.tree))
    templates = [text for path, part in parts for _, text in texts(part, path) if "{" in text]
    return frozenset(plain or quoted for text in (*conditions, *templates) for quoted, plain in _READ.findall(text))


_READ: Final = re.compile(r"`([^`]*)`\.|([A-Za-z0-9_]+)\.")


def _most_confident(step: dict[str, Any]) -> float | None:
    node = step.get("output_schema", {}).get("properties", {}).get("confidence", {})
    bounds = [
        bound for bound in (node.get("maximum"), max(node["enum"]) if "enum" in node else None) if bound is not None
    ]
    return min(bounds, default=None)


# The model --------------------------------------------------------------------------------------------------


def base_urls(subject: Subject) -> Iterator[Finding]:
    model = subject.tree["agent"].get("model", {})
    if "base_url" not in model:
        return
    at: Path = ("agent", "model", "base_url")
    url, provider = model["base_url"], model["provider"]
    if provider != "ollama":
        yield finding(
            "base_url_ignored",
            at,
            f"only the provider ollama reads base_url; the address of {provider} is the operator's setting "
            f"KAMPONG_{provider.upper()}_API_URL",
        )
    elif not re.match("https?://", url, re.IGNORECASE):
        yield finding(
            "base_url_not_http",
            at,
            "this is not an http or https address, so no call can be made; write one such as http://localhost:11434",
        )
