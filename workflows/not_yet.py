"""What a spec of version 1.2 may say and this version of Kampong does not do yet: such a spec is not run.

Nothing that limits who may decide, or what happens then, is ever left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from workflows.errors import NotYet
from workflows.spec.model import ApprovalStep, ConditionStep, Spec
from workflows.spec.policy_model import Policy


def not_yet(spec: Spec) -> tuple[str, ...]:
    """Each part that is not performed, as a person finds it in the file; empty when the spec can be run."""
    return tuple(dict.fromkeys(_parts(spec)))


def check_performed(spec: Spec) -> None:
    """NotYet unless all of the spec is performed."""
    parts = not_yet(spec)
    if parts:
        raise NotYet(parts)


def _parts(spec: Spec) -> Iterator[str]:
    yield from ()


def policies(spec: Spec) -> Iterator[Policy]:
    """Every policy under which a gate of this spec may open, the defaults among them."""
    yield spec.agent.policy
    yield from (tool.policy for tool in spec.agent.tools)
    yield from (step.policy for step in spec.agent.workflow if isinstance(step, ApprovalStep | ConditionStep))
