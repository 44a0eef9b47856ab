"""What the acts of a script may expect, and what a persisted case may expect of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from approvals.models import ApprovalRequest, AuditEntry
from statestore.models import StateRecord
from tests.conformance import matching
from tests.conformance.expectations import OVERALL, Outcome
from tests.conformance.matching import CaseError, Handler, Unmet, shown
from tests.conformance.service import Answer
from workflows.engine import jsontext
from workflows.models import Run, SpecVersion


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an act showed; only what it can show is there."""

    state: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    refused: str | None = None
    keys: list[str] | None = None
    record: str = ""
    answer: Answer | None = None


def check_act(where: str, expected: Mapping[str, Any], found: Found, names: dict[str, str]) -> None:
    """Unmet for what does not hold. `names` says what k1 and k2 stand for, and learns new ones."""
    handlers = of_answers(names) if found.answer is not None else of_acts(names)
    matching.by_key(f"{where}.expect", expected, found, handlers)


def of_acts(names: dict[str, str]) -> dict[str, Handler]:
    """Expectations of all acts but `http`."""
    return {
        "status": lambda where, wanted, found: matching.equal(where, wanted, found.state.get("status")),
        "code": lambda where, wanted, found: matching.equal(where, wanted, found.result.get("code")),
        "http": lambda where, wanted, found: matching.equal(where, wanted, found.result.get("http")),
        "mentions": lambda where, wanted, found: matching.mentions(where, wanted, found.result.get("error", "")),
        "pending": lambda where, wanted, found: _pending(where, wanted, found, names),
        "refused": _refused,
        "keys": lambda where, wanted, found: matching.equal(where, [names[name] for name in wanted], found.keys),
        **_OF_RECORDS,
    }


def _refused(where: str, wanted: Any, found: Found) -> None:
    matching.equal(where, wanted, found.refused is not None)


def _pending(where: str, expected: Mapping[str, Any], found: Found, names: dict[str, str]) -> None:
    pending = found.state.get("pendingApproval")
    if pending is None:
        raise Unmet(f"{where}: nothing is pending in {shown(found.state)}")
    handlers: dict[str, Handler] = {
        "step": lambda place, wanted, one: matching.equal(place, wanted, one["step"]),
        "kind": lambda place, wanted, one: matching.equal(place, wanted, one["kind"]),
        "tool": lambda place, wanted, one: matching.equal(place, wanted, one.get("toolName")),
        "has_key": lambda place, wanted, one: matching.equal(place, wanted, "key" in one),
        "new_key": lambda place, wanted, one: _learn(place, names, wanted, one["key"]),
    }
    matching.by_key(where, expected, pending, handlers)


def _learn(where: str, names: dict[str, str], name: str, key: str) -> None:
    if key in names.values():
        raise Unmet(f"{where}: {key} is not new")
    names[name] = key


# Records -------------------------------------------------------------------------------------------------------


def _record(found: Found) -> Any:
    return jsontext.loads(found.record)


_OF_RECORDS: Final[Mapping[str, Handler]] = {
    "step_index": lambda where, wanted, found: matching.equal(where, wanted, _record(found)["step_index"]),
    "step": lambda where, wanted, found: matching.equal(where, wanted, _record(found)["step"]),
    "phase": lambda where, wanted, found: matching.equal(where, wanted, _record(found)["phase"]),
    "outputs": lambda where, wanted, found: matching.subset(where, wanted, _record(found)["outputs"]),
    "outputs_lacks": lambda where, wanted, found: _outputs_lack(where, wanted, _record(found)),
    "lacks": lambda where, wanted, found: matching.lacks(where, wanted, found.record),
}


def _outputs_lack(where: str, steps: list[str], record: Any) -> None:
    """Neither a value nor the fact that the step completed without one."""
    for step in steps:
        matching.absent(where, step, True, record["outputs"])
        if step in record["without_output"]:
            raise Unmet(f"{where}: {step} counts as completed")


# Answers over HTTP ---------------------------------------------------------------------------------------------


def of_answers(names: dict[str, str]) -> dict[str, Handler]:
    """Expectations of an `http` act."""

    def answer(found: Found) -> Answer:
        if found.answer is None:
            raise CaseError("only an `http` act has an answer")
        return found.answer

    def fresh(where: str, wanted: Any, found: Found) -> None:
        fresh_id = answer(found).body["id"]
        matching.equal(where, wanted, fresh_id not in names.values())
        names["fresh_id"] = fresh_id

    return {
        "status": lambda where, wanted, found: matching.equal(where, wanted, answer(found).status),
        "json": lambda where, wanted, found: matching.subset(where, wanted, answer(found).body),
        "lacks": lambda where, wanted, found: matching.lacks(where, wanted, answer(found).text),
        "list_of": lambda where, wanted, found: matching.subset(
            where, [_line(one, names) for one in wanted], answer(found).body["approvals"]
        ),
        "fresh_id": fresh,
    }


def _line(wanted: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A line of the queue under its wire names."""
    line = dict(wanted)
    if "tool" in line:
        line["toolName"] = line.pop("tool")
    if "key" in line:
        line["key"] = names[line["key"]]
    return line


# The whole -----------------------------------------------------------------------------------------------------


def _records_left(where: str, wanted: int, found: Outcome) -> None:
    matching.equal(where, wanted, StateRecord.objects.filter(key__gte="approval:", key__lt="approval;").count())


def _store_created(where: str, wanted: bool, found: Outcome) -> None:
    """Whether anything at all was written. Our tables come with the installation, so rows are what can come to be."""
    tables = (StateRecord, Run, SpecVersion, ApprovalRequest, AuditEntry)
    matching.equal(where, wanted, any(table.objects.exists() for table in tables))


_OF_THE_WHOLE: Final[Mapping[str, Handler]] = {
    **OVERALL,
    "records_left": _records_left,
    "store_created": _store_created,
    "resumed_events": OVERALL["events"],
}


def check_last(expected: Mapping[str, Any], found: Outcome) -> None:
    """What the case expects of its last run, and of the whole script."""
    matching.by_key("expect", expected, found, _OF_THE_WHOLE)
