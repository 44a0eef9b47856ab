"""Small specs with something to note."""

from __future__ import annotations

GATE = "    - {step: judge, action: a, confidence_gate: true"
RAILS = "  guardrails: {confidence_threshold: 0.7, fallback_action: escalate_to_human}\n"


def http(rest: str = "", name: str = "find") -> str:
    return f"    - {{name: {name}, action: http_request, method: POST, url: 'https://example.net/'{rest}}}\n"


def tools(*lines: str) -> str:
    return "  tools:\n" + "".join(lines)


def steps(*lines: str) -> str:
    return "  workflow:\n" + "".join(f"    - {line}\n" for line in lines)


def condition(if_: str, then: str = "request_human_approval", name: str = "c") -> str:
    return f"{{step: {name}, type: condition, if: '{if_}', then: '{then}', else: request_human_approval}}"


def legacy(*lines: str) -> str:
    return steps("{step: s, action: a}", *lines)


#: code, version, the agent's rest, path, what the message must tell
FINDINGS = [
    ("knowledge_base_not_executed", "1.1", "  knowledge_base: [{type: text, source: x}]\n", "agent.knowledge_base", []),
    ("legacy_condition_syntax", "1.0", legacy(condition("s.x == 1")), "agent.workflow.1.if", ["c", "1.1"]),
    (
        "legacy_placeholder_syntax",
        "1.0",
        tools(http(", body: {raw: '{input}'}")),
        "agent.tools.0.body.raw",
        ["agent.tools.0.body.raw", "1.1"],
    ),
    (
        "unknown_key",
        "1.1",
        tools(http(", require_approval: true")),
        "agent.tools.0.require_approval",
        ["require_approval", 'did you mean "requires_approval"?'],
    ),
    ("unknown_key", "1.1", tools(http(", colour: red")), "agent.tools.0.colour", ["colour", "headers"]),
    (
        "step_taken_as_action",
        "1.1",
        steps("{step: s, type: condition, if: a, then: b, action: c}"),
        "agent.workflow.0.type",
        ["condition", "else"],
    ),
    (
        "duplicate_step_name",
        "1.1",
        steps("{step: s, action: a}", "{step: t, action: a}", "{step: s, action: a}"),
        "agent.workflow.2.step",
        ["agent.workflow.0", '"s"', "rename"],
    ),
    ("duplicate_tool_name", "1.1", tools(http(), http()), "agent.tools.1.name", ["agent.tools.0", "first", "rename"]),
    ("unknown_tool", "1.1", steps("{step: s, type: tool, tool: find}"), "agent.workflow.0.tool", ['"find"', "none"]),
    (
        "unknown_tool",
        "1.1",
        tools(http()) + steps(condition("true", "execute_tool(fnd)")),
        "agent.workflow.0.then",
        ['"fnd"', 'did you mean "find"?'],
    ),
    ("unknown_branch_action", "1.1", steps(condition("true", "page me")), "agent.workflow.0.then", ["page me"]),
    (
        "unknown_branch_action",
        "1.1",
        tools(http()) + steps(condition("true", "execute_tool( find )")),
        "agent.workflow.0.then",
        ["did you mean execute_tool(find)?"],
    ),
    (
        "unknown_branch_action",
        "1.1",
        tools(http()) + steps(condition("true", "find")),
        "agent.workflow.0.then",
        ["did you mean execute_tool(find)?"],
    ),
    (
        "unknown_branch_action",
        "1.1",
        steps(condition("true", "request_approval")),
        "agent.workflow.0.then",
        ['did you mean "request_human_approval"?'],
    ),
    (
        "tool_name_not_callable",
        "1.1",
        tools(http(name="find-it")) + steps(condition("true", "execute_tool(find-it)")),
        "agent.workflow.0.then",
        ["find-it", "rename"],
    ),
    ("legacy_condition_shape", "1.0", legacy(condition("s.x = 1")), "agent.workflow.1.if", ["s.x = 1", "=="]),
    ("legacy_condition_shape", "1.0", legacy(condition("s.x.y == 1")), "agent.workflow.1.if", ["one field"]),
    ("legacy_condition_shape", "1.0", legacy(condition("{{ s.x }} == 1")), "agent.workflow.1.if", ["braces"]),
    ("legacy_condition_shape", "1.0", legacy(condition("a-b.x == 1")), "agent.workflow.1.if", ["hyphen"]),
    (
        "legacy_condition_combinator",
        "1.0",
        legacy(condition("s.x == 1 and s.y == 2")),
        "agent.workflow.1.if",
        ["one comparison", "1.1"],
    ),
    (
        "legacy_condition_combinator",
        "1.0",
        legacy(condition('s.x == "a" || s.y == "b"')),
        "agent.workflow.1.if",
        ["two condition steps"],
    ),
    ("legacy_condition_combinator", "1.0", legacy(condition("s.x == true AND s.y")), "agent.workflow.1.if", []),
    ("legacy_condition_no_output", "1.0", legacy(condition("t.x == 1")), "agent.workflow.1.if", ['"t"', "earlier"]),
    ("legacy_condition_no_output", "1.0", legacy(condition("trigger.x == 1")), "agent.workflow.1.if", ["1.1"]),
    (
        "legacy_confidence_unreadable",
        "1.0",
        f"{RAILS}  workflow:\n{GATE}}}\n    - {condition('judge.confidence > 0.5')}\n",
        "agent.workflow.1.if",
        ["judge", "confidence_threshold"],
    ),
    (
        "legacy_confidence_unreadable",
        "1.0",
        f"{RAILS}  workflow:\n{GATE}}}\n    - {{step: b, action: a, query: '{{{{ judge.confidence }}}}'}}\n",
        "agent.workflow.1.query",
        ["judge"],
    ),
    (
        "legacy_reference_unresolved",
        "1.0",
        steps("{step: s, action: a, query: '{{ trigger.id }}'}"),
        "agent.workflow.0.query",
        ["trigger.id", "1.1"],
    ),
    (
        "legacy_reference_unresolved",
        "1.0",
        tools(http(", body: {json: [{a: '{vars.x}'}]}")),
        "agent.tools.0.body.json.0.a",
        ["vars.x", "1.1"],
    ),
    (
        "legacy_reference_unresolved",
        "1.0",
        steps("{step: s, action: a, query: '{{ t.x }}'}", "{step: t, action: a}"),
        "agent.workflow.0.query",
        ["t.x", "not run by then"],
    ),
    (
        "legacy_expression_ignored",
        "1.0",
        steps("{step: s, type: approval, message: '{{ $uppercase(input) }}'}"),
        "agent.workflow.0.message",
        ["$uppercase(input)", "1.1"],
    ),
    (
        "placeholder_is_text",
        "1.1",
        tools(http(", body: {json: {a: 'of {trigger.id}'}}")),
        "agent.tools.0.body.json.a",
        ["{trigger.id}", "{{trigger.id}}"],
    ),
    (
        "placeholder_is_text",
        "1.1",
        steps("{step: s, action: a, query: '{s.x}'}"),
        "agent.workflow.0.query",
        ["{{s.x}}"],
    ),
    (
        "reference_not_read",
        "1.1",
        steps("{step: s, action: a, instructions: 'Be kind to {{ input }}'}"),
        "agent.workflow.0.instructions",
        ["{{ input }}", "query"],
    ),
    (
        "reference_not_read",
        "1.1",
        steps("{step: s, action: a, instructions: 'Be kind to ${NAME}'}"),
        "agent.workflow.0.instructions",
        ["${NAME}", "query"],
    ),
    (
        "reference_not_read",
        "1.0",
        steps("{step: s, type: approval, message: 'in ${ZONE}?'}"),
        "agent.workflow.0.message",
        ["${ZONE}"],
    ),
    (
        "extract_not_dotted",
        "1.1",
        tools(http(", extract: 'parcels[0].status'")),
        "agent.tools.0.extract",
        ['write "parcels.0.status"'],
    ),
    (
        "extract_not_dotted",
        "1.1",
        tools(http(""", extract: '$.a["Service Note"]'""")),
        "agent.tools.0.extract",
        ['write "a.Service Note"'],
    ),
    ("extract_not_dotted", "1.1", tools(http(""", extract: 'a["b.c"]'""")), "agent.tools.0.extract", ["expression"]),
    ("extract_not_dotted", "1.0", tools(http(", extract: 'a..b'")), "agent.tools.0.extract", ["parcels.0.status"]),
    (
        "guardrail_without_action",
        "1.1",
        f"  guardrails: {{confidence_threshold: 0.7}}\n  workflow:\n{GATE}}}\n",
        "agent.guardrails.confidence_threshold",
        ["fallback_action: escalate_to_human"],
    ),
    ("guardrail_without_gate", "1.1", RAILS, "agent.guardrails.confidence_threshold", ["confidence_gate: true"]),
    (
        "gate_without_threshold",
        "1.1",
        f"  workflow:\n{GATE}}}\n",
        "agent.workflow.0.confidence_gate",
        ["confidence_threshold"],
    ),
    (
        "gate_never_confident",
        "1.1",
        f"{RAILS}  workflow:\n{GATE}, output_schema: {{type: object, required: [confidence], "
        "properties: {confidence: {type: number, maximum: 0.5}}}}\n",
        "agent.workflow.0.confidence_gate",
        ["0.5", "0.7"],
    ),
    (
        "escaped_credential",
        "1.1",
        tools(http(", headers: {Authorization: 'Bearer $${TOKEN}'}")),
        "agent.tools.0.headers.Authorization",
        ["one dollar"],
    ),
    (
        "escaped_credential",
        "1.0",
        tools(http(", query: {key: '$${TOKEN}'}")),
        "agent.tools.0.query.key",
        ["one dollar"],
    ),
    (
        "reference_not_read",
        "1.0",
        tools("    - {name: t, action: slack_post_message, token: '${T}', text: hi, channel: '#${OPS}'}\n"),
        "agent.tools.0.channel",
        ["${OPS}", "var"],
    ),
    (
        "reference_not_read",
        "1.1",
        tools("    - {name: t, action: component, use: a/b@1.0.0, op: o, with: {to: [{deep: '${OPS}'}]}}\n"),
        "agent.tools.0.with.to.0.deep",
        ["${OPS}", "var"],
    ),
    (
        "reference_not_read",
        "1.1",
        steps("{step: s, type: approval, message: 'with ${API_TOKEN}?'}"),
        "agent.workflow.0.message",
        ["${API_TOKEN}", "leave it out"],
    ),
    (
        "base_url_not_http",
        "1.1",
        "  model: {provider: ollama, name: m, base_url: 'localhost:11434'}\n",
        "agent.model.base_url",
        ["http://localhost:11434"],
    ),
    (
        "base_url_ignored",
        "1.1",
        "  model: {provider: openai, name: m, api_key: '${K}', base_url: 'https://example.net'}\n",
        "agent.model.base_url",
        ["KAMPONG_OPENAI_API_URL"],
    ),
]
