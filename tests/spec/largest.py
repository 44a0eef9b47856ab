"""Files of up to 4 MiB that were made to fill the memory or to take long, by name."""

from __future__ import annotations

from collections.abc import Callable

HEAD = 'version: "{}"\nagent:\n  id: a\n  name: b\n  role: c\n  goal: d\n'
_STEPS = "  workflow: [{step: s, action: a}]\n"
_RULE = (
    "  tools:\n  - name: a\n    action: http_request\n    method: GET\n    url: x\n"
    "    failure_when:\n    - {exists: true, "
)


def _of_1_1(rest: str) -> str:
    return HEAD.format("1.1") + rest


def _sharing(items: str, steps: int) -> str:
    """A list that many steps have as their inputs."""
    shared = f"x: &x [{items}]\n"
    return shared + _of_1_1(
        "  workflow:\n" + "".join(f"  - {{step: s{n}, action: a, inputs: *x}}\n" for n in range(steps))
    )


FILES: dict[str, Callable[[], str]] = {
    "empty mappings": lambda: "[" + "{}," * 299_000 + "]",
    "empty lists, too many": lambda: "[" + "[]," * 1_390_000 + "]",
    "unknown keys": lambda: _of_1_1(_STEPS) + "".join(f"k{n}: 1\n" for n in range(140_000)),
    "unknown keys of steps": lambda: _of_1_1(
        "  workflow:\n" + "".join(f"  - {{step: s{n}, action: a, foo: 1}}\n" for n in range(40_000))
    ),
    "steps": lambda: _of_1_1("  workflow:\n" + "".join(f"  - {{step: s{n}, action: a}}\n" for n in range(55_000))),
    "conditions of 1.0": lambda: (
        HEAD.format("1.0") + "  workflow: [" + "{step: a, type: condition, if: a, then: b, else: c}," * 27_000 + "]\n"
    ),
    "vars": lambda: (
        "vars: {" + ",".join(f"v{n}: {{type: list, default: [a, b]}}" for n in range(25_000)) + "}\n" + _of_1_1(_STEPS)
    ),
    "wrong items": lambda: _of_1_1("  workflow: [{step: s, action: a, inputs: [" + "1," * 290_000 + "]}]\n"),
    "empty steps": lambda: _of_1_1("  workflow: [" + "{}," * 290_000 + "]\n"),
    "empty tools": lambda: _of_1_1("  tools: [" + "{}," * 290_000 + "]\n" + _STEPS),
    "literal credentials": lambda: _of_1_1(
        "  tools:\n  - name: a\n    action: http_request\n    method: GET\n    url: x\n    headers: {"
        + ",".join(f"Token{n}: a" for n in range(140_000)) + "}\n" + _STEPS
    ),
    "aliases of a long list": lambda: _sharing("1," * 140_000, 14),
    "aliases of a list of expressions": lambda: _sharing(",".join(f'"{{{{ a[b={n}].c }}}}"' for n in range(4000)), 40),
    "wrong spans": lambda: _of_1_1('  workflow: [{step: s, action: a, query: "' + "{{a}}" * 790_000 + '"}]\n'),
    "right spans": lambda: _of_1_1('  workflow: [{step: s, action: a, query: "' + "{{input}}" * 440_000 + '"}]\n'),
    "spans that never end": lambda: _of_1_1('  workflow: [{step: s, action: a, query: "' + "{{ '" * 990_000 + '"}]\n'),
    "a response path": lambda: _of_1_1(_RULE + "path: " + "a." * 2_000_000 + "a}\n" + _STEPS),
    "a regular expression": lambda: _of_1_1(_RULE + 'path: a, matches: "' + "[^a-z]" * 600_000 + '"}\n' + _STEPS),
    "brackets in a regular expression": lambda: _of_1_1(
        _RULE + 'path: a, matches: "' + "(" * 24_000 + ")" * 24_000 + '"}\n' + _STEPS
    ),
    "anchors": lambda: "".join(f"a{n}: &a{n} 1\n" for n in range(140_000)),
    "lists as keys": lambda: "{" + ",".join("[" + "a," * 100 + f"{n}]: c" for n in range(2_800)) + "}",
    "old line breaks": lambda: _of_1_1('  workflow: [{step: s, action: a, query: "' + "\u2028" * 1_300_000 + '"}]\n'),
    "escapes": lambda: _of_1_1('  workflow: [{step: s, action: a, query: "' + "\\u00e9" * 690_000 + '"}]\n'),
}  # fmt: skip
