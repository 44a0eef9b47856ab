"""What a workflow step may look like, and how its kind is told (format 12 and 14)."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.spec import output_schema, texts
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import (
    Boolean,
    Faults,
    ListOf,
    Number,
    Record,
    Shape,
    TooManyFaults,
    kind_of,
    one_of,
    wrong_type,
)


@dataclass(frozen=True, kw_only=True)
class Literal:
    """Exactly one word, known to be right or the kind would not be meant."""

    word: str

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if value != self.word:
            faults.hard(path, f'"{path[-1]}" must be "{self.word}" here')
        return value


def kind(name: str, type_: str | None, keys: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Record:
    """A kind of step: the `type` that names it, the keys it needs besides `step`, and those it may have."""
    own: dict[str, Shape] = {"step": texts.NON_EMPTY}
    if type_ is not None:
        own["type"] = Literal(word=type_)
    required = {**own, **keys}
    return Record(name=name, keys={**required, **(optional or {})}, required=frozenset(required))


CONDITION = kind(
    "condition step", "condition", {"if": texts.NON_EMPTY, "then": texts.NON_EMPTY, "else": texts.NON_EMPTY}
)
TOOL = kind("tool step", "tool", {"tool": texts.NON_EMPTY})
APPROVAL = kind("approval step", "approval", {}, {"message": texts.PLAIN})
ACTION = kind(
    "action step",
    None,
    {"action": texts.NON_EMPTY},
    {
        "inputs": ListOf(item=texts.PLAIN),
        "query": texts.PLAIN,
        "confidence_gate": Boolean(),
        "output_schema": output_schema.node,
        "instructions": texts.NON_EMPTY,
        "model": texts.NON_EMPTY,
        "temperature": Number(least=0, most=2),
    },
)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A step of one of several kinds, tried in order; `typed` are those that `type` names."""

    typed: dict[str, Record]
    action: Record

    def __call__(self, value: Json, path: Path, faults: Faults) -> Json:
        if not isinstance(value, dict):
            wrong_type("a mapping", value, path, faults)
            return value
        named = self._named(value)
        tried: list[tuple[Record, Faults]] = []
        # Kinds of another `type` cannot fit, and their fault would be a hard one.
        for kind in (self.action,) if named is None else (named, self.action):
            inside = Faults()
            try:
                cleaned = kind(value, path, inside)
            except TooManyFaults:
                faults.found += inside.found
                raise
            if not inside.found:
                faults.take(inside)
                return cleaned
            tried.append((kind, inside))
        nearly = [inside for _, inside in tried if not inside.any_hard()]
        if len(nearly) == 1:
            faults.take(nearly[0])
        else:
            self._refuse(value, path, faults, tried)
        return value

    def _named(self, value: Json) -> Record | None:
        type_ = value.get("type")
        return self.typed.get(type_) if isinstance(type_, str) else None

    def _refuse(self, value: Json, path: Path, faults: Faults, tried: list[tuple[Record, Faults]]) -> None:
        """Say what the kind that the step plainly means lacks."""
        meant = self._named(value)
        if meant is None and "action" not in value:
            kinds = f'a "type" ({one_of(self.typed)}) or an "action"'
            if "type" in value:
                type_ = value["type"]
                found = f'"{clipped(type_)}"' if isinstance(type_, str) else kind_of(type_)
                faults.hard((*path, "type"), f'a step needs {kinds}; its "type" is {found}')
            else:
                faults.hard((*path, "action"), f"a step needs {kinds}")
            return
        about = next(inside for kind, inside in tried if kind is (meant or self.action))
        for fault in about.found:
            faults.hard(fault.path, fault.message)


STEPS = Steps(typed={"condition": CONDITION, "tool": TOOL, "approval": APPROVAL}, action=ACTION)
