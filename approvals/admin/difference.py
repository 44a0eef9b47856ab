"""Two versions of a value, line by line: what stood before, what stands now, and which part of a line differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from workflows.admin.words import visible
from workflows.engine import jsontext
from workflows.engine.values import Json

#: Lines of each side that are compared at most, and characters of a line that are shown.
MOST_LINES = 400
MOST_WIDE = 2000
#: Lines that are alike and stand this near to a difference are shown.
NEAR = 2


@dataclass(frozen=True, kw_only=True)
class Side:
    """One line of one version; `mark` is the part that the other version does not have."""

    head: str = ""
    mark: str = ""
    tail: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the comparison. `kind` is same, changed, added, removed or skipped (`count` lines are alike)."""

    kind: str
    before: Side | None = None
    now: Side | None = None
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Difference:
    """`note` says what was left out of the comparison, because there is too much of it."""

    lines: tuple[Line, ...]
    note: str = ""

    @property
    def same(self) -> bool:
        return all(line.kind in ("same", "skipped") for line in self.lines)


def between(before: Json, now: Json) -> Difference:
    """The difference of two JSON values, as lines of `place: value`; a text keeps its own lines."""
    return between_lines(lines_of(before), lines_of(now))


def between_lines(before: Sequence[str], now: Sequence[str]) -> Difference:
    note = ""
    if max(len(before), len(now)) > MOST_LINES:
        longest = max(len(before), len(now))
        note = f"Clipped: the first {MOST_LINES:,} of {longest:,} lines are compared."
        before, now = before[:MOST_LINES], now[:MOST_LINES]
    return Difference(lines=tuple(_lines(before, now)), note=note)


def lines_of(value: Json, name: str = "") -> list[str]:
    """`place: value` for each value in the tree; the lines of a text that has several stand under its place."""
    if isinstance(value, dict) and value:
        return [line for key, inner in value.items() for line in lines_of(inner, f"{name}.{key}" if name else key)]
    if isinstance(value, list) and value:
        return [line for at, inner in enumerate(value) for line in lines_of(inner, f"{name}[{at}]")]
    if isinstance(value, str) and "\n" in value:
        return [f"{name}:" if name else "text:", *(f"  {line}" for line in value.replace("\r\n", "\n").split("\n"))]
    shown = value if isinstance(value, str) else jsontext.dumps(value)
    return [f"{name}: {shown}" if name else shown]


def _lines(before: Sequence[str], now: Sequence[str]) -> Iterator[Line]:
    matcher = SequenceMatcher(None, before, now, autojunk=False)
    blocks = matcher.get_opcodes()
    for at, (tag, old, old_end, new, new_end) in enumerate(blocks):
        if tag == "equal":
            yield from _alike(before[old:old_end], first=at == 0, last=at == len(blocks) - 1)
            continue
        for one, other in zip_longest(before[old:old_end], now[new:new_end]):
            yield _differing(one, other)


def _alike(lines: Sequence[str], *, first: bool, last: bool) -> Iterator[Line]:
    """Lines that are alike; those far from any difference are counted."""
    head, tail = (0 if first else NEAR), (0 if last else NEAR)
    left_out = len(lines) - head - tail
    if left_out < 2:
        yield from (_same(line) for line in lines)
        return
    yield from (_same(line) for line in lines[:head])
    yield Line(kind="skipped", count=left_out)
    yield from (_same(line) for line in lines[len(lines) - tail :])


def _same(line: str) -> Line:
    side = Side(head=_shown(line))
    return Line(kind="same", before=side, now=side)


def _differing(before: str | None, now: str | None) -> Line:
    if before is None:
        return Line(kind="added", now=_side(now or "", _indent(now or ""), 0))
    if now is None:
        return Line(kind="removed", before=_side(before, _indent(before), 0))
    head, tail = _common(before, now)
    return Line(kind="changed", before=_side(before, head, tail), now=_side(now, head, tail))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _common(one: str, other: str) -> tuple[int, int]:
    """How many characters two lines share at their beginnings and at their ends, cut back to whole words."""
    most = min(len(one), len(other))
    head = next((at for at in range(most) if one[at] != other[at]), most)
    while head and not one[head - 1].isspace():
        head -= 1
    most -= head
    tail = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    while tail and not one[len(one) - tail].isspace():
        tail -= 1
    return head, tail


def _side(line: str, head: int, tail: int) -> Side:
    end = len(line) - tail
    return Side(head=_shown(line[:head]), mark=_shown(line[head:end]), tail=_shown(line[end:]))


def _shown(text: str) -> str:
    if len(text) > MOST_WIDE:
        text = f"{text[: MOST_WIDE // 2]} [… {len(text) - MOST_WIDE:,} characters …] {text[-MOST_WIDE // 2 :]}"
    return visible(text)
