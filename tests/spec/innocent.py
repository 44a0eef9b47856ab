"""Small specs with what only looks like something to note."""

from __future__ import annotations

from tests.spec.noted import GATE, RAILS, condition, http, legacy, steps, tools

#: What looks like a finding of this code and is none.
INNOCENT = [
    ("unknown_key", "1.1", steps("{step: s, type: action, action: a}")),
    ("step_taken_as_action", "1.1", steps("{step: s, type: action, action: a}")),
    ("unknown_tool", "1.1", tools(http(name="find-it")) + steps("{step: s, type: tool, tool: find-it}")),
    ("tool_name_not_callable", "1.1", tools(http(name="find-it")) + steps("{step: s, type: tool, tool: find-it}")),
    ("legacy_condition_combinator", "1.0", legacy(condition("s.x == Tom and Jerry"))),
    ("legacy_condition_combinator", "1.0", legacy(condition('s.x == "a and s.y == 2"'))),
    ("legacy_condition_shape", "1.0", legacy(condition(" s.x>=-1.5 "))),
    ("legacy_condition_shape", "1.1", legacy(condition("s.x = 1"))),
    ("legacy_condition_no_output", "1.0", legacy(condition("s.x == 1"))),
    ("legacy_reference_unresolved", "1.0", legacy("{step: t, action: a, query: '{{ input }} {{s.a.b}} {{ s }} {x}'}")),
    ("legacy_reference_unresolved", "1.1", legacy("{step: t, action: a, query: '{{ trigger.id }}'}")),
    ("legacy_expression_ignored", "1.0", steps("{step: s, action: a, query: '{{ open, ${A} and {{ input }}'}")),
    ("placeholder_is_text", "1.0", steps("{step: s, action: a, query: '{s.x}'}")),
    ("placeholder_is_text", "1.1", tools(http(", body: {raw: '{id} ${input} {{ input }} {{ function(){input}() }}'}"))),
    ("reference_not_read", "1.1", steps("{step: s, type: approval, message: '$${A} ${5} $A'}")),
    ("extract_not_dotted", "1.1", tools(http(", extract: 'a.0.$count'"))),
    ("extract_not_dotted", "1.1", tools(http(", extract: ''"))),
    ("guardrail_without_action", "1.1", f"{RAILS}  workflow:\n{GATE}}}\n"),
    ("guardrail_without_gate", "1.1", f"{RAILS}  workflow:\n{GATE}}}\n"),
    ("gate_without_threshold", "1.1", f"{RAILS}  workflow:\n{GATE}}}\n"),
    ("gate_without_threshold", "1.1", f"  workflow:\n{GATE}}}\n    - {condition('judge.confidence < 0.5')}\n"),
    ("gate_without_threshold", "1.0", f"  workflow:\n{GATE}}}\n    - {condition('judge.sum > 5')}\n"),
    ("escaped_credential", "1.1", tools(http(", headers: {Authorization: 'Bearer ${T} $${T}', X-Auth: '$${T}'}"))),
    ("reference_not_read", "1.1", tools(http(", headers: {X: '${T}'}, body: {json: {a: '${T}'}}"))),
    (
        "reference_not_read",
        "1.1",
        tools(
            "    - {name: t, action: slack_post_message, token: '${T}', channel: '$${A} $A', text: '{{ \"${B}\" }}'}\n"
        ),
    ),
    ("base_url_not_http", "1.1", "  model: {provider: ollama, name: m, base_url: 'http://localhost:11434/v1'}\n"),
]
