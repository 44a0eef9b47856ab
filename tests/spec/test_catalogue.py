"""The ways to be refused (format 20), family by family: every error of a stage at once, each at its own path."""

from __future__ import annotations

import pytest

from tests.spec.specs import errors, spec

BIG = 2**53


def tool(rest: str, method: str = "POST") -> str:
    return spec(f"  tools:\n    - {{name: t, action: http_request, method: {method}, url: x, {rest}}}\n")


def steps(*flow: str) -> str:
    return spec("  workflow:\n" + "".join(f"    - {step}\n" for step in flow))


def schema(node: str, more: str = "") -> str:
    return steps(f"{{step: s, action: a, {more}output_schema: {node}}}")


T, S, O = "agent.tools.0", "agent.workflow.0", "agent.workflow.0.output_schema"  # noqa: E741  three roots

CATALOGUE: dict[str, tuple[str, list[str]]] = {
    "vars": (
        "vars: {c: 5, d: {type: x, foo: 1}, e: {type: number, items: string, default: x}, f: {type: list, default: "
        '[1, true]}, g: {type: string, default: "eu-${X}"}, h: {type: number, default: "eu-${X}"}, i: {type: list, '
        'default: "a, b"}, j: {type: list, items: x}, k: {type: string, default: }, l: {type: number, default: '
        '"${X}"}}\n'
        + spec(""),
        ["vars.c", "vars.d", "vars.d.type", "vars.e.items", "vars.e.default", "vars.f.default", "vars.h.default",
         "vars.i.default", "vars.j.items", "vars.k.default"],
    ),
    "names of vars": (
        'vars: {"a b": {type: number}, __proto__: {type: string}, "": {type: list}, "1a": {type: list}, é: '
        '{type: list}}\n'
        + spec(""),
        ["vars.a b", "vars.__proto__", "vars.", "vars.1a", "vars.é"],
    ),
    "model, hard": (
        spec('  model: {provider: OpenAI, name: "", timeout_ms: "5"}\n'),
        ["agent.model.provider", "agent.model.name", "agent.model.timeout_ms"],
    ),
    "model, soft": (
        spec("  model: {provider: openai, name: x, base_url: my box, timeout_ms: 0}\n"),
        ["agent.model.base_url", "agent.model.timeout_ms", "agent.model.api_key"],
    ),
    "other blocks": (
        spec('  knowledge_base: [{type: x, source: ""}, 5]\n  trigger: {}\n  approval_notifier: {type: slack, '
             'token: abc, '
             'channel: ""}\n  guardrails: {confidence_threshold: 1.5, fallback_action: x}\n'),
        ["agent.guardrails.confidence_threshold", "agent.guardrails.fallback_action", "agent.knowledge_base.0.type",
         "agent.knowledge_base.0.source", "agent.knowledge_base.1", "agent.trigger.type",
         "agent.approval_notifier.token", "agent.approval_notifier.channel"],
    ),
    "rules between the keys of an HTTP tool": (
        tool('body: {raw: ""}, response: {mode: text}, extract: a, failure_when: []', "GET"),
        [f"{T}.body", f"{T}.failure_when", f"{T}.extract"],
    ),
    "a hard fault stops its block": (tool("body: {}, response: {mode: text}, extract: a", "GET"), [f"{T}.body"]),
    "names and values of headers": (
        tool('headers: {"": a, "a b": b, é: c, x: 5, Authorization: lit}'),
        [f"{T}.headers.", f"{T}.headers.a b", f"{T}.headers.é", f"{T}.headers.x"],
    ),
    "credentials": (
        tool("headers: {Authorization: lit, X-Token: a, Accept: b}, query: {sig: a, key: b, Access_Key: c}"),
        [f"{T}.headers.Authorization", f"{T}.headers.X-Token", f"{T}.query.key", f"{T}.query.Access_Key"],
    ),
    "failure rules": (
        tool('failure_when: [{path: "", exists: true}, {path: a}, {exists: true}, {path: a, exists: 1}, {path: '
             'a, equals: '
             '[], matches: "("}, {path: a, equals: null}, {path: a, exists: true, message_path: "a b", foo: 1}, 5]'),
        [f"{T}.failure_when.{at}" for at in ("0.path", "1", "2.path", "3.exists", "4.equals", "4.matches", "6",
                                              "6.message_path", "7")],
    ),
    "pace and retry": (
        tool(f"pace: {{rps: 1000.1, x: 1}}, retry: {{max: 0, foo: 1, backoff: x, base_ms: {BIG}, max_delay_ms: 1.5}}"),
        [f"{T}.pace", f"{T}.pace.rps", f"{T}.retry", f"{T}.retry.max", f"{T}.retry.backoff", f"{T}.retry.base_ms",
         f"{T}.retry.max_delay_ms"],
    ),
    "kinds of tools": (
        spec("  tools: [5, {action: foo}, {name: x}, {action: component, name: x}, {action: gmail_send}]\n"),
        ["agent.tools.0", "agent.tools.1.action", "agent.tools.2.action", "agent.tools.3.use", "agent.tools.3.op",
         *(f"agent.tools.4.{key}" for key in ("name", "token", "to", "subject", "body"))],
    ),
    "components": (
        spec('  tools: [{name: a, action: component, use: a/b@^1.0.0, op: "", config: {a: 5, b: "${API_KEY}"}, '
             'secrets: '
             "{t: x}, with: [], foo: 1}]\n"),
        [T, f"{T}.use", f"{T}.op", f"{T}.with", f"{T}.config.a", f"{T}.secrets.t"],
    ),
    "config of components": (
        spec('  tools: [{name: a, action: component, use: a.b-c/d-e@1.0.0-rc.1, op: x, config: {b: "${API_KEY}", c: '
             '"x${API_KEY}", d: "${MONKEY_ID}"}}]\n'),
        [f"{T}.config.b", f"{T}.config.d"],
    ),
    "steps": (
        steps("5", "{}", "{step: a}", "{step: a, type: foo}", '{step: a, type: tool, tool: ""}', '{step: "", '
                                                                                                 'action: a}',
              "{step: a, action: a, temperature: 3}", "{step: a, type: condition, if: true, then: a, else: b}",
              '{step: a, type: tool, tool: "", action: ""}', "{type: approval, message: 5}",
              "{step: a, type: null, action: b}", "{step: a, type: condition, action: b, temperature: 3}"),
        [f"agent.workflow.{at}" for at in ("0", "1.action", "2.action", "3.type", "4.tool", "5.step", "6.temperature",
                                           "7.if", "8.tool", "9.step", "9.message", "11.temperature")],
    ),
    "output schemas, hard": (
        schema('{type: [string], properties: {"a b": {type: string}, x: {type: string, minLength: 1.5, foo: 1, '
               'default: , '
               'pattern: "("}}}'),
        [f"{O}.type", f"{O}.properties.a b", *(f"{O}.properties.x{key}" for key in ("", ".default", ".minLength",
                                                                                    ".pattern"))],
    ),
    "output schemas, soft": (
        schema("{type: object, required: [x], properties: {a: {type: array}, b: {type: object}, c: {type: "
               "integer, default: "
               "2.5, enum: [1, a]}, d: {type: array, items: {type: object, properties: {}}}, e: {type: string, "
               "enum: []}, "
               "confidence: {type: string}}}", "confidence_gate: true, "),
        [f"{O}.{at}" for at in ("properties.e.enum", "required", "properties.a", "properties.b", "properties.c.default",
                                "properties.c.enum.1", "properties.d.items", "properties")],
    ),
    "the root of an output schema": (schema("{type: array}", "confidence_gate: true, "), [f"{O}.type"]),
    "expressions, the steps before the tools": (
        spec('  tools: [{name: t, action: http_request, method: GET, url: '
             '"{{ nobody }}"}]\n  workflow:\n    - {step: input, '
             'type: condition, if: " ", then: "{{ $now() }}", else: "{{ /a/ }}"}\n'),
        [f"{S}.step", f"{S}.if", f"{S}.then", f"{S}.else", f"{T}.url"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", CATALOGUE)
def test_every_error_of_the_stage_is_told_at_its_path(family: str) -> None:
    text, wanted = CATALOGUE[family]

    assert [error.where for error in errors(text)] == wanted


@pytest.mark.parametrize("key", ["vars", "output_schema", "instructions", "model", "temperature"])
def test_what_1_0_has_not_is_refused_by_its_name(key: str) -> None:
    more = "vars: {}\n" if key == "vars" else ""
    value = {"output_schema": "{type: object, properties: {a: {type: string}}}", "temperature": "1"}.get(key, "x")
    step = "{step: s, action: a}" if key == "vars" else f"{{step: s, action: a, {key}: {value}}}"

    (error,) = errors(more + spec(f"  workflow: [{step}]\n", "1.0"))

    assert error.where == (key if key == "vars" else f"{S}.{key}")
    assert key in error.message
    assert "1.1" in error.message
    assert error.line is not None
