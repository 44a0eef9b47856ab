"""The record of a pause, `approval:<key>` in the store (engine semantics 21.2, design 3.2)."""

from __future__ import annotations

from typing import Any

from approvals.models import ApprovalRequest
from statestore.entries import Versioned
from statestore.models import StateRecord
from statestore.store import StateStore
from workflows import codec
from workflows.engine.editing import edited_outputs, of_outputs
from workflows.engine.effects import Decision, Pause
from workflows.engine.values import Outputs
from workflows.errors import NotPossible
from workflows.models import Run, Status

FORMAT = 1
KIND = "approval:"

Record = dict[str, Any]


def store_of(workspace: str, agent_id: str) -> StateStore:
    """The store in which an agent's approval records live."""
    return StateStore(workspace, agent_id, kinds=(KIND,))


def store_key(key: object) -> str:
    return f"{KIND}{key}"


def read(request: ApprovalRequest) -> Versioned | None:
    """The record of a request with its version, while it can be decided."""
    return store_of(request.workspace, request.agent_id).versioned(store_key(request.key))


def peek(request: ApprovalRequest) -> Record | None:
    """The record of a request also after its time, for reading only: until a sweep takes it, outputs live there."""
    rows = StateRecord.objects.filter(
        workspace=request.workspace, workflow=request.agent_id, key=store_key(request.key)
    )
    text = rows.values_list("value", flat=True).first()
    return None if text is None else codec.load_record(text)


def check_format(record: Record) -> None:
    """NotPossible for a record that a later version wrote: this one would not know what it decides."""
    if record["format"] > FORMAT:
        raise NotPossible(
            "this approval was written by a later version of Kampong; decide it there. Nothing was changed.",
            status=Status.AWAITING.value,
        )


def make(run: Run, pause: Pause) -> Record:
    """Everything that a resume, in any process, needs. Secrets are not among it: outputs and references only."""
    record: Record = {
        "format": FORMAT,
        "run": str(run.uuid),
        "agent_id": run.agent_id,
        "spec_hash": run.spec_hash,
        "step_index": pause.step_index,
        "step": pause.step,
        "phase": pause.phase,
        "kind": pause.kind,
        "reason": pause.reason,
        "tool": pause.tool,
        "digest": pause.digest,
        "action": pause.action,
        "input": run.input,
        "trigger": codec.load_record(run.trigger) if run.trigger else {},
        "overrides": codec.load_record(run.overrides) if run.overrides else {},
        **codec.outputs_json(pause.outputs),
        "reopens": 0,
    }
    if pause.url_marks:
        record["url_marks"] = dict(pause.url_marks)
    verdict = pause.verdict
    if verdict is not None:
        record["advice"] = {"rule": verdict.rule, "reason": verdict.reason}
    earlier = pause.differs_from
    if earlier is not None:
        # An approval that only came to its end is asked for again as often as that happens.
        record["reopens"] = earlier.reopens if pause.went_stale else earlier.reopens + 1
        record["previous"] = {
            "key": earlier.key,
            "digest": earlier.digest,
            "action": earlier.action,
            "what_differs": pause.what_differs,
        }
        if earlier.edits:
            # What was changed before stays changed: the action that is shown now has it in it.
            record["edits"] = dict(earlier.edits)
        if settled := of_outputs(earlier.edits):
            # Nobody knows any more what these outputs were: no edit that comes now takes these back.
            record["settled"] = settled
    return record


def fits(request: ApprovalRequest, record: Record) -> bool:
    """Whether row and record are of one moment: an edit or a rebind can come between the two readings."""
    return (request.digest, request.spec_hash) == (record["digest"], record["spec_hash"])


def outputs_ahead(record: Record) -> Outputs:
    """The outputs with which the run goes on: after a rebind those that the spec has ahead of the step."""
    outputs = codec.outputs_from(record)
    carried = record.get("carried")
    return outputs if carried is None else {step: value for step, value in outputs.items() if step in carried}


def outputs_approved(record: Record) -> Outputs:
    """The same, with the edits that stand: what an approval approves."""
    return edited_outputs(outputs_ahead(record), record.get("edits", {}))


def decision_from(record: Record, request: ApprovalRequest, **given: Any) -> Decision:
    """The decision as the engine takes it: the answer, and what it was given for."""
    return Decision(
        step_index=record["step_index"],
        kind=record["kind"],
        tool=record["tool"],
        digest=record["digest"],
        action=record["action"],
        reopens=record["reopens"],
        phase=record["phase"],
        key=str(request.key),
        edits=record.get("edits", {}) if given["approved"] else {},
        **given,
    )
