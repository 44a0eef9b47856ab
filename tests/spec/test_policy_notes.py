"""A policy in a file of 1.0 or 1.1 asks nobody, and the author is told so (spec 1.2)."""

from __future__ import annotations

import pytest

from tests.spec.noted import http, steps, tools
from tests.spec.specs import accepted, spec
from workflows.spec.errors import Note


def unknown(text: str) -> list[Note]:
    return [note for note in accepted(text).notes if note.code == "unknown_key"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("rest", "where"),
    [
        (tools(http(", approval: {quorum: 2}")), "agent.tools.0.approval"),
        (tools(http(", approvers: {users: [asha]}")), "agent.tools.0.approvers"),
        (tools(http(", on_reject: continue")), "agent.tools.0.on_reject"),
        ("  approvals: {require_reason: always}\n", "agent.approvals"),
        ("  guardrails: {approvers: {quorum: 2}}\n", "agent.guardrails.approvers"),
        (steps("{step: s, type: approval, quorum: 2}"), "agent.workflow.0.quorum"),
        (steps("{step: s, type: approval, valid_for: 1h}"), "agent.workflow.0.valid_for"),
        (steps("{step: s, type: tool, tool: t, approval: {}}"), "agent.workflow.0.approval"),
    ],
)
def test_a_key_of_a_policy_says_which_version_it_needs_and_that_nobody_is_asked(
    version: str, rest: str, where: str
) -> None:
    (note,) = unknown(spec(rest, version))

    assert note.where == where
    assert note.line is not None
    assert 'needs version "1.2"' in note.message
    assert "nobody is asked" in note.message
    assert ("requires_approval: true" in note.message) == (".tools." in where)


def test_it_is_told_at_the_top_of_a_file_as_well() -> None:
    (note,) = unknown("approvals: {quorum: 2}\n" + spec(""))

    assert (note.where, "nobody is asked" in note.message) == ("approvals", True)


def test_it_is_told_before_all_other_keys() -> None:
    many = "".join(f"  key_{number}: 1\n" for number in range(300))
    found = unknown(spec(many + tools(http(", approval: {quorum: 2}"))))

    assert found[0].where == "agent.tools.0.approval"


def test_a_key_that_only_sounds_like_one_is_compared_with_those_of_its_place() -> None:
    (note,) = unknown(spec("  guardrails: {mode: strict}\n"))

    assert "1.2" not in note.message
    assert "fallback_action" in note.message
