"""What a request would be under its spec as the file is now: found by the step's name, and rehearsed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from approvals.models import ApprovalRequest
from approvals.records import Record
from approvals.rehearsal import NoGate, rehearse, situation_of
from workflows import codec, registry
from workflows.engine import paths
from workflows.engine.deciding import kept_names
from workflows.engine.effects import Pause
from workflows.engine.values import Json
from workflows.errors import NotPossible
from workflows.models import Status
from workflows.registry import BrokenFile, SpecFile
from workflows.spec.model import Spec

_ELSE = "restore the file, or reject the request or cancel the run"


@dataclass(frozen=True, kw_only=True)
class Binding:
    """`pause` is the gate under the spec in `file`; `carried` names the outputs that the spec has ahead of it.

    `settled` are the edits that are part of those outputs, whatever is void now.
    """

    file: SpecFile
    pause: Pause
    carried: tuple[str, ...]
    settled: Mapping[str, Json]

    def record(self, record: Record) -> Record:
        """The record under this spec. All outputs stay in it: the request can be bound back."""
        bound = {key: value for key, value in record.items() if key not in ("edits", "proposed_from", "advice")}
        pause = self.pause
        if self.settled:
            bound["edits"] = dict(self.settled)
        return bound | {
            "spec_hash": self.file.hash,
            "step_index": pause.step_index,
            "kind": pause.kind,
            "tool": pause.tool,
            # A guardrail's words hold the confidence, which nobody knows any more.
            "reason": record["reason"] if pause.phase == "after" else pause.reason,
            "digest": pause.digest,
            "action": pause.action,
            "url_marks": dict(pause.url_marks),
            "carried": list(self.carried),
        }


def present(request: ApprovalRequest) -> SpecFile | BrokenFile | None:
    """The file of the request's spec as it is on disk now."""
    return registry.registry().present(request.agent_id, request.run.source)


def bound(request: ApprovalRequest, record: Record) -> Binding:
    """The request under the spec in its file. Reads only; call it outside any transaction. NotPossible says why not."""
    file = present(request)
    if file is None:
        raise _not(f"its file is gone; {_ELSE}")
    if isinstance(file, BrokenFile):
        raise _not(f"its file is no valid spec now: {file.message}; {_ELSE}")
    if file.hash == record["spec_hash"]:
        raise _not("the spec did not change, so there is nothing to bind it to; decide it")
    _need_fit(request, file)
    index = _index(file.spec, request.step)
    carried = _carried(file.spec, index, request)
    outputs = {name: value for name, value in codec.outputs_from(record).items() if name in carried}
    settled = {path: value for path, value in record.get("settled", {}).items() if paths.segments(path)[0] in carried}
    situation = situation_of({**record, "step_index": index}, outputs=outputs, edits=settled)
    try:
        pause = rehearse(file.spec, situation, record.get("url_marks", {}))
    except NoGate as problem:
        raise _not(f'at step "{request.step}" the spec does not ask a person now: {problem}; {_ELSE}') from problem
    if pause.policy.mode == "record":
        raise _not(f'step "{request.step}" is only recorded now, and the run waits for it; {_ELSE}')
    return Binding(file=file, pause=replace(pause, outputs=outputs), carried=carried, settled=settled)


def _need_fit(request: ApprovalRequest, file: SpecFile) -> None:
    if request.mode == "record":
        raise _not("its run went on long ago under the spec that it started with; restore the file, or reject it")
    if file.agent_id != request.agent_id:
        raise _not(f"{file.path} is the spec of another agent now, {file.agent_id}; {_ELSE}")


def _index(spec: Spec, name: str) -> int:
    found = [index for index, step in enumerate(spec.agent.workflow) if step.step == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise _not(f'{len(found)} steps are called "{name}" now, and one is meant; {_ELSE}')
    raise _not(f'there is no step "{name}" any more; {_ELSE}')


def _carried(spec: Spec, index: int, request: ApprovalRequest) -> tuple[str, ...]:
    """Outputs of the steps ahead, what their gates called, and what this gate and this step itself gave already."""
    ahead = [step.step for step in spec.agent.workflow[:index]]
    own = [request.step] if request.phase == "after" else []
    gates = [name for step in (*ahead, request.step) for name in kept_names(step)]
    return tuple(dict.fromkeys([*ahead, *own, *gates]))


def _not(why: str) -> NotPossible:
    return NotPossible(f"this cannot be bound to the spec as it is now: {why}", status=Status.AWAITING.value)
