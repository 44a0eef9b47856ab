"""What a withdrawable approval keeps of its record, so that the request can be open again (spec 1.2, `recall`).

The record is gone with the claim, and the successor holds most of it. The rest is kept in the store as `recall:<key>`
for as long as the approval can be withdrawn: each value is there once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from approvals.models import ApprovalRequest
from approvals.records import Record
from statestore.entries import ABSENT
from statestore.keys import RECALL
from statestore.store import StateStore
from workflows import codec
from workflows.engine import jsontext
from workflows.engine.values import NOTHING, MaybeJson, Outputs
from workflows.models import Run

#: What the runs hold themselves.
_WITH_THE_RUN = ("run", "input", "trigger", "overrides", "outputs", "without_output", "order")
#: The row of the run says when it is over; the entry only has to be there until then.
_LONGER = timedelta(minutes=5)


def _store(request: ApprovalRequest) -> StateStore:
    return StateStore(request.workspace, request.agent_id, kinds=(RECALL,))


def keep(request: ApprovalRequest, record: Record, approved: Outputs, recall: timedelta) -> None:
    """Keep what a successor with the outputs `approved` does not hold. In the transaction of the decision."""
    outputs = codec.outputs_from(record)
    other = {step: value for step, value in outputs.items() if not _same(value, approved.get(step, ...))}
    rest = {name: value for name, value in record.items() if name not in _WITH_THE_RUN}
    kept = {"record": rest, "order": list(outputs), "other": codec.outputs_json(other)}
    _store(request).put(f"{RECALL}{request.key}", kept, ttl=recall + _LONGER)


def take(request: ApprovalRequest, successor: Run) -> Record | None:
    """The record as it was before the decision, made for nobody yet (`run`); None when somebody else took it.

    One counted delete: of two who withdraw at once, one has it.
    """
    kept: Any = _store(request).claim(f"{RECALL}{request.key}")
    if kept is ABSENT:
        return None
    held = {**codec.load_outputs(successor.outputs), **codec.outputs_from(kept["other"])}
    outputs = {step: held[step] for step in kept["order"]}
    return {
        **kept["record"],
        "input": successor.input,
        "trigger": codec.load_record(successor.trigger) if successor.trigger else {},
        "overrides": codec.load_record(successor.overrides) if successor.overrides else {},
        **codec.outputs_json(outputs),
    }


def _same(one: MaybeJson, other: Any) -> bool:
    """Whether the successor holds this value; `...` where it holds none for the step."""
    if other is ... or one is NOTHING or other is NOTHING:
        return one is other
    return jsontext.same(one, other) and jsontext.dumps(one) == jsontext.dumps(other)
