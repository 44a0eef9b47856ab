"""What a valid spec's author should know (format 17): how notes are made, and the ones of the format itself.

Every code is in `CODES`, in the order in which notes are told. The first three are the format's, at most one each; of
every other code there is one note a finding, up to `MOST_OF_A_CODE`, then one that counts the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

from workflows.spec import patterns, rules
from workflows.spec.errors import Note, Path, clipped, dotted, listed
from workflows.spec.expression_rules import texts
from workflows.spec.model import Json
from workflows.spec.policy_shapes import POLICY_KEYS
from workflows.spec.shapes import Dropped

#: More notes of one kind than an author would read.
MOST_OF_A_CODE: Final = 20

CODES: Final[tuple[str, ...]] = (
    "knowledge_base_not_executed",
    "legacy_condition_syntax",
    "legacy_placeholder_syntax",
    "unknown_key",
    "step_taken_as_action",
    "duplicate_step_name",
    "duplicate_tool_name",
    "unknown_tool",
    "unknown_branch_action",
    "tool_name_not_callable",
    "legacy_condition_shape",
    "legacy_condition_combinator",
    "legacy_condition_no_output",
    "legacy_confidence_unreadable",
    "legacy_reference_unresolved",
    "legacy_expression_ignored",
    "placeholder_is_text",
    "extract_not_dotted",
    "guardrail_without_action",
    "guardrail_without_gate",
    "gate_without_threshold",
    "gate_never_confident",
    "escaped_credential",
    "reference_not_read",
    "secret_var_written",
    "base_url_not_http",
    "base_url_ignored",
    "default_not_expanded",
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A spec without faults. `tree` has no unknown keys; `written` is the file's own, `dropped` what lies between."""

    tree: dict[str, Json]
    written: dict[str, Json]
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What becomes a note. `message` is asked only for those that are told: a guess at a name costs something."""

    code: str
    path: Path
    message: Callable[[], str]


Maker: TypeAlias = Callable[[Subject], Iterator[Finding]]
#: Who must be asked, in words that mean nothing else.
_OF_1_2: Final = frozenset({"approval", "approvals", "approvers", "quorum", "four_eyes"})
_RANK: Final[Mapping[str, int]] = {code: at for at, code in enumerate(CODES)}


def gather(makers: Iterable[Maker], subject: Subject) -> tuple[Note, ...]:
    """All notes, by the order of their codes; many of one code are cut and counted."""
    found = sorted((finding for make in makers for finding in make(subject)), key=lambda one: _RANK[one.code])
    return tuple(note for _, same in groupby(found, key=lambda one: one.code) for note in _told(list(same)))


def _told(same: list[Finding]) -> Iterator[Note]:
    for finding in same[:MOST_OF_A_CODE]:
        yield Note(code=finding.code, path=finding.path, message=finding.message())
    more = len(same) - MOST_OF_A_CODE
    if more > 0:
        rest = same[MOST_OF_A_CODE]
        yield Note(code=rest.code, path=rest.path, message=f"and {more} more of this kind, the first of them here")


def finding(code: str, path: Path, message: str | Callable[[], str]) -> Finding:
    """Something to note; its line and column are looked up when it is told."""
    return Finding(code=code, path=path, message=(lambda: message) if isinstance(message, str) else message)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for a name that is nearly one of these, else nothing."""
    near = get_close_matches(clipped(name), list(known)[:1000], n=1, cutoff=0.7)
    return f'; did you mean "{clipped(near[0])}"?' if near else ""


# Those of the format ------------------------------------------------------------------------------------------


def knowledge_base(subject: Subject) -> Iterator[Finding]:
    if subject.tree["agent"].get("knowledge_base"):
        yield finding(
            "knowledge_base_not_executed",
            ("agent", "knowledge_base"),
            "the sources of knowledge_base are declared but not used by any run; put what the model must know into a "
            "step's query or instructions",
        )


def legacy_conditions(subject: Subject) -> Iterator[Finding]:
    found = [(path, step["step"]) for path, step in rules.steps(subject.tree) if "if" in step]
    if found:
        yield finding(
            "legacy_condition_syntax",
            (*found[0][0], "if"),
            f"the conditions of {listed((name for _, name in found), most=1000)} have the syntax of 1.0; "
            'it keeps working, and expressions of version "1.1" replace it',
        )


def legacy_placeholders(subject: Subject) -> Iterator[Finding]:
    found = [
        path
        for tool_path, tool in rules.tools(subject.tree)
        for path, text in texts(tool, tool_path)
        if patterns.LEGACY_PLACEHOLDER.search(text)
    ]
    if found:
        yield finding(
            "legacy_placeholder_syntax",
            found[0],
            f"single-brace placeholders in {listed(map(dotted, found), most=1000)}; they keep working, and "
            '{{ expressions }} of version "1.1" replace them',
        )


# Keys that nothing reads --------------------------------------------------------------------------------------


def unknown_keys(subject: Subject) -> Iterator[Finding]:
    """A mistyped `requires_approval` must not pass in silence: nobody would be asked."""
    misread = taken_as_action(subject)
    # The first ones are told, whatever else a file has: what would have asked a person.
    for key in sorted(subject.dropped, key=lambda dropped: not _is_policy(dropped)):
        step = key.path[:3]
        if step in misread or (key.path[3:] == ("type",) and _type_of(subject, step) == "action"):
            continue
        yield finding("unknown_key", key.path, partial(_unknown, key))


def _is_policy(key: Dropped) -> bool:
    """A key of an approval policy; one with a name that means something elsewhere too counts where 1.2 has it."""
    name, place = key.path[-1], key.path[:-1]
    return name in _OF_1_2 or (name in POLICY_KEYS and len(place) == 3 and place[1] in ("tools", "workflow"))


def _unknown(key: Dropped) -> str:
    name = str(key.path[-1])
    if _is_policy(key):
        here = " (on a tool, requires_approval: true asks in every version)" if key.path[1:2] == ("tools",) else ""
        return (
            f'"{name}" needs version "1.2" and is ignored here: nobody is asked because of it, and it does not limit '
            f'who decides; write version: "1.2"{here}'
        )
    guess = nearest(name, key.known) or f"; the keys here are {listed(key.known)}"
    return f'there is no key "{clipped(name)}" here, so it is ignored{guess}'


def misread_steps(subject: Subject) -> Iterator[Finding]:
    """A condition that lacks a branch and has an `action` is an action step (format 12 and 21.2)."""
    for path, type_ in taken_as_action(subject).items():
        yield finding(
            "step_taken_as_action",
            (*path, "type"),
            f'this step asks the model, because it has an "action"; its type {clipped(type_)} is ignored, and so are '
            f"the other keys that an action step does not have. For another kind of step, remove the action and give "
            f"it all its keys ({_KEYS_OF_A_TYPE})",
        )


_KEYS_OF_A_TYPE: Final = "condition: if, then, else; tool: tool; approval: message"


def taken_as_action(subject: Subject) -> Mapping[Path, str]:
    """The steps that were read as action steps although their `type` says something else."""
    found: dict[Path, str] = {}
    for path, step in rules.steps(subject.tree):
        if "action" in step:
            type_ = _type_of(subject, path)
            if type_ not in (None, "action"):
                found[path] = str(type_)
    return found


def _type_of(subject: Subject, step: Path) -> Json:
    if step[:2] != ("agent", "workflow"):
        return None
    return subject.written["agent"]["workflow"][step[2]].get("type")
