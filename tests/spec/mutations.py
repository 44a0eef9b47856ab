"""Specs that were good once: real ones, changed at random as text and as trees."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from workflows.spec.reader import read
from workflows.spec.source import Unreadable

HERE = Path(__file__).resolve().parent

Pick: TypeAlias = random.Random

_ODD_TEXTS = (
    "", " ", "\n", "${TOKEN}", "$${TOKEN}", "{{ trigger.x }}", "{{ nobody.x }}", "{{ $now() }}", "{{ (a", "{{}}", "}}",
    "{{ " * 300, "{{ " + "(" * 1500 + " }}", "{{ " + "a." * 900 + "a }}", "{{ " + "-" * 3000 + "1 }}",
    "{{ a[b[c[d]]] }}", "{{ /(a+)+$/ }}", "{{ a ?? b ?: c }}", "x" * 5_000, "é" * 3_000, "\u202e\u2028\x85", "😀" * 500,
    "\ufeff", "a\u0301", "__proto__", "constructor", "trigger", "vars", "true", "1e999", "0x10", "a.b[0].c", '["',
    "(?<n>a)\\k<n>", "[", "(((", "(a+)+$" * 200, "http://[", "http://a:99999/", "execute_tool(", "$x := 1",
    "function($x){$x}", "a^(b)", "|a|b|", "%", "1.0", "1.1", "1.2", "json", "http_request", "component", "condition",
    "action", "acme/x@1.2.3-", "\x7f",
)  # fmt: skip
_ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, -(2**63), 10**300, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan"), [],
    {}, [[]], [{}], {"": {}}, ["a", 1, None], {"type": "object"}, {"json": {}, "form": {}},
    {"type": "array", "items": {"type": "x"}},
)  # fmt: skip
_ODD_LINES = (
    "\t", "- ", "- - - -", "? ", ": ", "&a", "*a", "<<: *a", "---", "...", "%YAML 1.1", "%TAG ! x", "!!binary x",
    "key: |2", "key: >-", "'", '"', "{", "[", "}", "]", "# ", "a: b: c", '"\\ud800"', "\r", "\x00", "\x1b[0m",
    "\ufeff", "? [a, b]", "0o17: x", "on: off", "agent:", 'version: "1.1"', "  workflow: []",
    "    - &s {step: s, action: a}\n    - *s",
)  # fmt: skip


def seeds() -> list[str]:
    """Every spec of the shared cases and every example."""
    cases = yaml.safe_load((HERE.parent / "cases" / "spec-cases.yaml").read_text(encoding="utf-8"))
    examples = sorted((HERE.parent.parent / "examples").glob("*.yaml"))
    return [case["yaml"] for case in cases] + [example.read_text(encoding="utf-8") for example in examples]


def mutated(pick: Pick, texts: list[str]) -> str | bytes:
    text: str = pick.choice(texts)
    if pick.random() < 0.6:
        text = _tree_changed(pick, text)
    if pick.random() < 0.5:
        for _ in range(pick.choice((1, 1, 2, 5))):
            text = pick.choice(_TEXT_CHANGES)(pick, text)
    if pick.random() < 0.05:
        return _bytes_changed(pick, text)
    return text


# As text ------------------------------------------------------------------------------------------------------


def _character(pick: Pick, text: str) -> str:
    at = pick.randrange(len(text) + 1)
    char: str = pick.choice(("", *" \t\n\r:-[]{}'\"#&*!|>%@`,?\\$é\u2028", chr(pick.randrange(0x20, 0xD000))))
    return text[:at] + char + text[at + pick.choice((0, 1)) :]


def _line(pick: Pick, text: str) -> str:
    lines = text.split("\n")
    at = pick.randrange(len(lines))
    match pick.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines.insert(at, " " * pick.randrange(12) + pick.choice(_ODD_LINES))
        case 3:
            lines[at] = pick.choice(("  ", "\t", " ")) + lines[at]
        case 4:
            lines[at] = lines[at].lstrip()
        case _:
            other = pick.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _piece(pick: Pick, text: str) -> str:
    start = pick.randrange(len(text) + 1)
    end = min(len(text), start + pick.randrange(200))
    return pick.choice(
        (text[:start] + text[end:], text[:end] + text[start:], text[:start] + text[start:end] * 40 + text[end:])
    )


def _nested(pick: Pick, text: str) -> str:
    at, depth = pick.randrange(len(text) + 1), pick.choice((10, 190, 250, 5_000))
    opening = pick.choice(("[", "{", "- ", "{a: ", "[{", "? ", "&a ", "!x "))
    return text[:at] + opening * depth + text[at:]


def _aliased(pick: Pick, text: str) -> str:
    """Anchor one value and use it elsewhere, sometimes many times."""
    for where in ("&x ", "*x "):
        at = text.find(": ", pick.randrange(len(text) + 1)) + 2
        text = text[:at] + where + text[at:]
    if pick.random() < 0.3:
        levels = (f"b{n}: &b{n} [{', '.join([f'*b{n - 1}' if n else 'x'] * 30)}]\n" for n in range(6))
        text = "".join(levels) + text
    return text


def _line_ends(pick: Pick, text: str) -> str:
    return text.replace("\n", pick.choice(("\r\n", "\r", "\n\n", "\x85", "\u2028")))


_TEXT_CHANGES = (_character, _character, _character, _line, _line, _line, _piece, _nested, _aliased, _line_ends)


def _bytes_changed(pick: Pick, text: str) -> bytes:
    encoding = pick.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"))
    data = bytearray(text.encode(encoding, "replace"))
    for _ in range(pick.randrange(4)):
        if data:
            data[pick.randrange(len(data))] = pick.randrange(256)
    return bytes(data)


# As trees -----------------------------------------------------------------------------------------------------


def _tree_changed(pick: Pick, text: str) -> str:
    try:
        document = read(text)
    except Unreadable:
        return text
    tree = copy.deepcopy(document.tree if document is not None else None)
    changes = pick.choice((1, 1, 1, 2, 4))
    for _ in range(changes):
        places = [*_places(tree)]
        if places:
            parent, key = pick.choice(places)
            pick.choice(_TREE_CHANGES)(pick, parent, key)
    try:
        if changes == 1 and pick.random() < 0.4:
            return json.dumps(tree, ensure_ascii=pick.random() < 0.5)
        # aliases appear where a change has put one object into two places
        written: str = yaml.safe_dump(
            tree, sort_keys=False, allow_unicode=True, default_flow_style=pick.choice((False, None))
        )
        return written
    except (RecursionError, ValueError):
        return text  # too deep for the writer, or an object inside itself


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    waiting, seen = [tree], set()
    while waiting:
        value = waiting.pop()
        if not isinstance(value, (dict, list)) or id(value) in seen:
            continue
        seen.add(id(value))
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            waiting.append(item)


def _set_odd(pick: Pick, parent: Any, key: Any) -> None:
    parent[key] = pick.choice(_ODD_TEXTS) if pick.random() < 0.6 else copy.deepcopy(pick.choice(_ODD_VALUES))


def _delete(pick: Pick, parent: Any, key: Any) -> None:
    del parent[key]


def _as_another_type(pick: Pick, parent: Any, key: Any) -> None:
    value = parent[key]
    parent[key] = pick.choice(([value], {"value": value}, json.dumps(value), str(value), {str(value)[:50]: value}))


def _rename(pick: Pick, parent: Any, key: Any) -> None:
    if isinstance(parent, dict):
        parent[pick.choice((*_ODD_TEXTS, str(key) + "s", str(key).upper(), str(key)[:-1]))] = parent.pop(key)


def _repeat(pick: Pick, parent: Any, key: Any) -> None:
    if isinstance(parent, list):
        parent.extend([parent[key]] * pick.choice((1, 2, 300)))
    else:
        for n in range(pick.choice((1, 300))):
            parent[f"{key}{n}"] = parent[key]


def _move(pick: Pick, parent: Any, key: Any) -> None:
    """The same object in a second place, which may be inside itself: a cycle is for the writer to refuse."""
    places = [place for place in _places(parent) if place[0] is not parent[key]]
    other, at = pick.choice(places)
    other[at] = copy.deepcopy(parent[key]) if pick.random() < 0.7 else str(parent[key])


def _deepen(pick: Pick, parent: Any, key: Any) -> None:
    for _ in range(pick.choice((3, 60, 180))):
        parent[key] = pick.choice(([parent[key]], {"items": parent[key], "type": "array"}, {"a": parent[key]}))


def _odd_end(pick: Pick, parent: Any, key: Any) -> None:
    if isinstance(parent[key], str):
        at = pick.randrange(len(parent[key]) + 1)
        parent[key] = parent[key][:at] + pick.choice(_ODD_TEXTS) + parent[key][at:]


_TREE_CHANGES: tuple[Callable[[Pick, Any, Any], None], ...] = (
    _set_odd, _set_odd, _delete, _as_another_type, _rename, _repeat, _move, _deepen, _odd_end, _odd_end,
)  # fmt: skip
