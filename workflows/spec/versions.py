"""What each version of the format has: its shape, its rules and its notes. A new version is a new entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workflows.spec import (
    agent_shapes,
    block_notes,
    legacy_notes,
    naming_notes,
    notes,
    policy_rules,
    rules,
    secret_notes,
    strict,
    text_notes,
)
from workflows.spec.expression_rules import ExpressionRules
from workflows.spec.model import Json
from workflows.spec.policy_expressions import PolicyExpressions
from workflows.spec.shapes import Faults, Shape
from workflows.spec.step_shapes import STEPS
from workflows.spec.tool_shapes import tool


@dataclass(frozen=True, kw_only=True)
class Version:
    """`shape` is stage 2 of loading, `rules` stage 3, `expressions` stage 4 and `notes` stage 5."""

    shape: Shape
    rules: tuple[Callable[[dict[str, Json], Faults], None], ...]
    expressions: ExpressionRules | None
    notes: tuple[notes.Maker, ...]


_SHAPE = agent_shapes.document(agent_shapes.agent(tool, STEPS))
_RULES = (rules.var_names, rules.output_schemas, rules.component_config, rules.look_alikes)
_NOTES: tuple[notes.Maker, ...] = (
    notes.knowledge_base,
    notes.unknown_keys,
    notes.misread_steps,
    naming_notes.repeated_steps,
    naming_notes.repeated_tools,
    naming_notes.unknown_tools,
    naming_notes.branches_of_no_form,
    block_notes.extracts,
    block_notes.escaped_credentials,
    block_notes.guardrails,
    block_notes.base_urls,
    text_notes.unread_references,
    text_notes.templates_in_instructions,
)
_NOTES_OF_1_0: tuple[notes.Maker, ...] = (
    notes.legacy_conditions,
    notes.legacy_placeholders,
    legacy_notes.condition_shapes,
    legacy_notes.combinators,
    legacy_notes.conditions_without_output,
    legacy_notes.unreadable_confidence,
    legacy_notes.unresolved_references,
    legacy_notes.ignored_expressions,
)
_NOTES_OF_1_1: tuple[notes.Maker, ...] = (
    text_notes.placeholders,
    text_notes.defaults,
    secret_notes.written_secrets,
)

VERSIONS: dict[str, Version] = {
    "1.0": Version(
        shape=_SHAPE,
        rules=(rules.nothing_of_1_1, *_RULES),
        expressions=None,
        notes=(*_NOTES, *_NOTES_OF_1_0),
    ),
    "1.1": Version(
        shape=_SHAPE,
        rules=_RULES,
        expressions=ExpressionRules(),
        notes=(*_NOTES, *_NOTES_OF_1_1),
    ),
    "1.2": Version(
        shape=strict.DOCUMENT,
        rules=(
            *_RULES,
            policy_rules.policies,
            policy_rules.names_of_calls,
            policy_rules.branches_that_ask,
            policy_rules.polled_tool,
            policy_rules.stays_seen,
        ),
        expressions=PolicyExpressions(),
        notes=(*_NOTES, *_NOTES_OF_1_1),
    ),
}


def version_problem(version: Json) -> str | None:
    """Why a file's version is refused, None when it is one of ours."""
    if isinstance(version, str) and version in VERSIONS:
        return None
    known = " or ".join(f'"{name}"' for name in VERSIONS)
    if isinstance(version, (int, float)) and not isinstance(version, bool):
        return f'"version" must be {known}, in quotes: without them it is a number'
    return f'"version" must be {known}'
