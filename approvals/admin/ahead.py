"""What happens after the answer: the next steps of the pinned workflow, and the end where nobody answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.models import ApprovalRequest
from approvals.policy import policy_of
from workflows.admin.words import clipped
from workflows.errors import Refusal
from workflows.registry import pinned
from workflows.spec.model import (
    ActionStep,
    ApprovalStep,
    CloseStep,
    ConditionStep,
    HttpTool,
    OnceStep,
    OpenStep,
    Spec,
    Step,
    ToolStep,
)
from workflows.spec.patterns import EXECUTE_TOOL
from workflows.spec.policy_model import Policy

#: More steps than that are counted, not listed.
MOST = 5
_NAME = 100


@dataclass(frozen=True, kw_only=True)
class Coming:
    """A step that follows, and what it does."""

    name: str
    does: str


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """`steps` follow an approval, and a rejection too where `after_no`; `nobody` is what an end without answer does."""

    steps: tuple[Coming, ...]
    more: int
    after_no: bool
    nobody: str
    #: Whether nothing follows, as far as the spec could be read.
    is_last: bool


def ahead_of(request: ApprovalRequest) -> Ahead:
    """What comes after this request, by the spec that its run is pinned to and the policy it was opened under."""
    held = policy_of(request)
    spec = spec_of(request)
    if request.mode == "record" or spec is None:
        return Ahead(steps=(), more=0, after_no=False, nobody=_nobody(request, held), is_last=False)
    rest = spec.agent.workflow[request.step_index + 1 :]
    return Ahead(
        steps=tuple(_coming(spec, step) for step in rest[:MOST]),
        more=max(0, len(rest) - MOST),
        after_no=held.on_reject == "continue",
        nobody=_nobody(request, held),
        is_last=not rest,
    )


def spec_of(request: ApprovalRequest) -> Spec | None:
    """The spec that the request's run executes; None for a stored text that no longer loads."""
    try:
        return pinned(request.workspace, request.spec_hash)
    except Refusal:
        return None


def _nobody(request: ApprovalRequest, held: Policy) -> str:
    if request.mode == "record":
        return "it is closed as expired"
    match held.on_expire:
        case "reject":
            return "the run ends as rejected"
        case "fail":
            return "the run ends as failed"
        case "execute_tool":
            return f"the tool “{clipped(held.on_expire_tool or '', _NAME)}” is called, and the run ends as expired"
    return "the run ends as expired"


def _coming(spec: Spec, step: Step) -> Coming:
    return Coming(name=clipped(step.step, _NAME), does=_does(spec, step))


def _does(spec: Spec, step: Step) -> str:
    match step:
        case ActionStep():
            return "asks the model"
        case ToolStep():
            return _calls(spec, step.tool)
        case ApprovalStep():
            if step.policy.mode == "record":
                return "asks a person, and does not wait for the answer"
            return "asks a person again"
        case ConditionStep():
            branches = " or ".join(_unique(_branch(spec, branch) for branch in (step.then, step.else_)))
            return f"checks a condition, then {branches}"
        case OnceStep():
            return "goes on only once for a key"
        case OpenStep():
            return "opens an incident"
        case CloseStep():
            return "closes an incident"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _branch(spec: Spec, branch: str) -> str:
    tool = EXECUTE_TOOL.fullmatch(branch)
    return "asks a person" if tool is None else _calls(spec, tool[1])


def _calls(spec: Spec, name: str) -> str:
    tool = spec.agent.tool(name)
    does = f"calls the tool “{clipped(name, _NAME)}”"
    if isinstance(tool, HttpTool):
        does += f" ({tool.method})"
    asks = tool is not None and tool.requires_approval
    return f"asks a person again, then {does}" if asks else does
