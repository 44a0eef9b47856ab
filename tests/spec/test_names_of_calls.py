"""What a gate called is kept under a name of the step's, which no other step may share (spec 1.2)."""

from __future__ import annotations

import pytest

from tests.spec.specs import accepted, only_error, spec

TOOLS = """\
  tools:
    - {name: tell, action: http_request, method: POST, url: "https://x.test/", POLICY}
    - {name: look, action: http_request, method: GET, url: "https://x.test/"}
  workflow:
"""


def text(policy: str, *names: str) -> str:
    """Approval steps of these names, under a policy for all of them."""
    steps = "".join(f"    - {{step: {name}, type: approval}}\n" for name in names)
    return spec(f"  approvals: {{{policy}}}\n{TOOLS.replace(', POLICY', '')}{steps}", "1.2")


@pytest.mark.parametrize("policy", ["auto: {check: execute_tool(look)}", "on_decision: {rejected: execute_tool(look)}"])
@pytest.mark.parametrize(
    ("names", "at", "words"),
    [
        (("sign", "read", "sign"), 2, "as well"),
        (("sign", "read", "sign.check"), 2, 'gate of step "sign"'),
        (("a", "read.on_decision", "read"), 1, 'gate of step "read"'),
    ],
)
def test_no_gate_can_take_what_another_one_was_given(policy: str, names: tuple[str, ...], at: int, words: str) -> None:
    error = only_error(text(policy, *names))

    assert error.where == f"agent.workflow.{at}.step"
    assert error.line is not None
    assert words in error.message


def test_the_policy_of_a_tool_counts_too() -> None:
    tools = TOOLS.replace("POLICY", "approval: {on_decision: {approved: execute_tool(look)}}")
    step = "    - {step: pay, type: tool, tool: tell}\n"

    assert only_error(spec(tools + step + step, "1.2")).where == "agent.workflow.1.step"


def test_where_no_policy_calls_a_tool_these_names_mean_what_they_say() -> None:
    accepted(text("require_reason: always", "sign", "sign", "sign.check"))


def test_other_names_with_a_dot_are_free() -> None:
    accepted(text("auto: {check: execute_tool(look)}", "sign", "sign.checks", "check", "other.check"))
