"""What each version of the format has: its shape, its rules and its notes. A new version is a new entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workflows.spec import agent_shapes, notes, rules
from workflows.spec.errors import Note
from workflows.spec.expression_rules import ExpressionRules
from workflows.spec.model import Json
from workflows.spec.shapes import Faults, Shape
from workflows.spec.step_shapes import STEPS
from workflows.spec.tool_shapes import tool


@dataclass(frozen=True, kw_only=True)
class Version:
    """`shape` is stage 2 of loading, `rules` stage 3, `expressions` stage 4 and `notes` stage 5."""

    shape: Shape
    rules: tuple[Callable[[dict[str, Json], Faults], None], ...]
    expressions: ExpressionRules | None
    notes: tuple[Callable[[dict[str, Json]], Iterator[Note]], ...]


_SHAPE = agent_shapes.document(agent_shapes.agent(tool, STEPS))
_RULES = (rules.var_names, rules.output_schemas, rules.component_config, rules.look_alikes)

VERSIONS: dict[str, Version] = {
    "1.0": Version(
        shape=_SHAPE,
        rules=(rules.nothing_of_1_1, *_RULES),
        expressions=None,
        notes=(notes.knowledge_base, notes.legacy_conditions, notes.legacy_placeholders, notes.not_performed),
    ),
    "1.1": Version(
        shape=_SHAPE,
        rules=_RULES,
        expressions=ExpressionRules(),
        notes=(notes.knowledge_base, notes.not_performed),
    ),
}
#: Known by name, so that the refusal can say so.
NOT_YET = ("1.2",)


def version_problem(version: Json) -> str | None:
    """Why a file's version is refused, None when it is one of ours."""
    if isinstance(version, str) and version in VERSIONS:
        return None
    known = " or ".join(f'"{name}"' for name in VERSIONS)
    if isinstance(version, str) and version in NOT_YET:
        return f'version "{version}" is not supported yet; write {known}'
    if isinstance(version, (int, float)) and not isinstance(version, bool):
        return f'"version" must be {known}, in quotes: without them it is a number'
    return f'"version" must be {known}'
