"""Reads one YAML 1.2 document into plain JSON data and remembers where every value stands (format 2).

The parser's events are composed here, not by the YAML library: its composer recurses, merges, keeps the last of two
equal keys and lets aliases multiply without end.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.scalars import NotAScalar, container_tag_fits, plain, tagged
from workflows.spec.source import MAX_BYTES, Source, Unreadable, source

MAX_NESTING = 200
#: Aliases written out.
MAX_VALUES = 300_000
#: How often an alias may stand for something that holds aliases itself, multiplied out.
MAX_MULTIPLIED = 100
_MOST_KEY_TEXT = 1024
#: Lines in which a tab is mended; each costs another reading.
_MOST_MENDED = 20
_EMPTY_LINE = re.compile(r"[ \t]*(?:#.*)?")


class Places:
    """Where the children of one list or mapping stand."""

    __slots__ = ("_index", "inside", "marks")

    def __init__(self) -> None:
        self.marks = array("Q")
        self.inside: dict[int, Places] | None = None
        self._index: dict[str, int] | None = None

    def add(self, mark: int, inside: Places | None) -> None:
        if inside is not None:
            if self.inside is None:
                self.inside = {}
            self.inside[len(self.marks)] = inside
        self.marks.append(mark)

    def index(self, parent: Json, key: str | int) -> int | None:
        """The position of a child among its siblings, None when there is no such child."""
        if isinstance(parent, list):
            return key if isinstance(key, int) and 0 <= key < len(parent) else None
        if self._index is None:
            self._index = {name: at for at, name in enumerate(parent)}
        return self._index.get(key) if isinstance(key, str) else None


@dataclass(frozen=True, kw_only=True)
class Document:
    """`tree` is plain JSON data, except that `.inf` and `.nan` are floats; aliases share what they name."""

    tree: Json
    _mark: int
    _places: Places | None

    def position(self, path: Path) -> tuple[int, int] | None:
        """Line and column (from 1) where the value at `path` starts, None when there is no such value."""
        mark, places, value = self._mark, self._places, self.tree
        for key in path:
            at = places.index(value, key) if places is not None else None
            if places is None or at is None:
                return None
            mark, value = places.marks[at], value[key]
            places = places.inside.get(at) if places.inside is not None else None
        return _line_and_column(mark)


@dataclass(kw_only=True, slots=True)
class _Node:
    """A finished value. Written out, it has the size `weight` and holds `count` values.

    `height` is its nesting, `fan` how its aliases multiply.
    """

    value: Json
    text: str | None = None
    mark: int
    places: Places | None = None
    weight: int = 1
    count: int = 1
    height: int = 0
    fan: int = 1
    uses: int = 0


@dataclass(kw_only=True, slots=True)
class _Open(_Node):
    """A list or mapping being filled. `key` is the key that waits for its value."""

    anchor: str | None
    key: str | None = None
    key_lines: dict[str, int] = field(default_factory=dict)


def read(data: str | bytes) -> Document | None:
    """The document, or None when the file holds none. Raises Unreadable."""
    text = source(data)
    for _ in range(min(_MOST_MENDED, MAX_BYTES // (len(text.text) + 1))):
        try:
            return _composed(text)
        except Unreadable as fault:
            mended = _without_harmless_tabs(text, fault)
            if mended is None:
                raise
            text = mended
    return _composed(text)


def _composed(text: Source) -> Document | None:
    try:
        return _Composer(text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "this is not YAML"
        if "cannot start any token" in reason and mark is not None and _char_at(text.text, mark) == "\t":
            reason = "a tab cannot indent; use blanks"
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Unreadable(f"{error.context}: {reason}" if error.context else reason, line, column) from error
    except yaml.YAMLError as error:
        raise Unreadable(str(error)) from error


def _without_harmless_tabs(text: Source, fault: Unreadable) -> Source | None:
    """The text with blanks for the tabs of the line that the parser refused, if nothing but a comment stands in it.

    YAML 1.2 allows tabs there, the parser does not. Where a tab would mean something, it would not have stopped.
    """
    mark = getattr(fault.__cause__, "problem_mark", None)
    if mark is None or "\t" not in text.text[mark.index : mark.index + 1]:
        return None
    start, end = mark.index, mark.index
    while start and text.text[start - 1] not in "\r\n":
        start -= 1
    while end < len(text.text) and text.text[end] not in "\r\n":
        end += 1
    line = text.text[start:end]
    if not _EMPTY_LINE.fullmatch(line):
        return None
    return replace(text, text=text.text[:start] + line.replace("\t", " ") + text.text[end:])


class _Composer:
    def __init__(self, text: Source) -> None:
        self._events: Any = yaml.CSafeLoader(text.text)
        self._restore = text.restore
        self._anchors: dict[str, _Node] = {}
        self._open: list[_Open] = []
        self._root: _Node | None = None
        self._values = 0
        self._expanded = 0

    def document(self) -> Document | None:
        handlers = {
            yaml.ScalarEvent: lambda event: self._add(self._scalar(event)),
            yaml.AliasEvent: lambda event: self._add(self._alias(event)),
            yaml.SequenceStartEvent: lambda event: self._start(event, []),
            yaml.MappingStartEvent: lambda event: self._start(event, {}),
            yaml.SequenceEndEvent: lambda _: self._end(),
            yaml.MappingEndEvent: lambda _: self._end(),
            yaml.DocumentStartEvent: self._document_start,
        }
        while (kind := type(event := self._events.get_event())) is not yaml.StreamEndEvent:
            if kind in handlers:
                handlers[kind](event)
        if self._root is None:
            return None
        return Document(tree=self._root.value, _mark=self._root.mark, _places=self._root.places)

    def _document_start(self, event: Any) -> None:
        if self._root is not None:
            raise _fault("a second document starts here; a file holds one", event)

    def _scalar(self, event: Any) -> _Node:
        self._counted(event)
        value: Json = self._restore(event.value, event.style == '"')
        if "\0" in value:
            raise _fault("the text holds a NUL character, which cannot be stored", event)
        try:
            if event.tag is not None:
                meaning = tagged(value, event.tag)
            else:
                meaning = plain(value) if event.implicit[0] else value
        except NotAScalar as problem:
            raise _fault(str(problem), event) from problem
        node = _Node(value=meaning, text=value, mark=_mark(event), weight=1 + len(value))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _start(self, event: Any, value: Json) -> None:
        self._counted(event)
        name = "seq" if isinstance(value, list) else "map"
        if not container_tag_fits(event.tag, name):
            raise _fault(f"the tag {event.tag[:60]} is not known here", event)
        if len(self._open) >= MAX_NESTING:
            raise _fault(f"nested more than {MAX_NESTING} deep", event)
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        self._open.append(_Open(value=value, mark=_mark(event), anchor=event.anchor, height=1))

    def _end(self) -> None:
        done = self._open.pop()
        if done.anchor is not None:
            self._anchors[done.anchor] = done
        self._add(done)

    def _alias(self, event: Any) -> _Node:
        target = self._anchors.get(event.anchor)
        if target is None:
            if any(container.anchor == event.anchor for container in self._open):
                raise _fault(f"the alias *{clipped(event.anchor)} contains itself", event)
            raise _fault(f"the alias *{clipped(event.anchor)} has no anchor before it", event)
        target.uses += 1
        self._counted(event, target.count)
        fan = target.uses * target.fan
        self._expanded += target.weight
        if (target.fan > 1 and fan > MAX_MULTIPLIED) or self._expanded > MAX_BYTES:
            raise _fault("the aliases multiply out beyond reason; write the values out or use fewer", event)
        if len(self._open) + target.height > MAX_NESTING:
            raise _fault(f"nested more than {MAX_NESTING} deep", event)
        return _Node(
            value=target.value,
            text=target.text,
            mark=_mark(event),
            places=target.places,
            weight=target.weight,
            count=target.count,
            height=target.height,
            fan=fan,
        )

    def _counted(self, event: Any, values: int = 1) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _fault(f"more than {MAX_VALUES} values, aliases written out", event)

    def _add(self, node: _Node) -> None:
        """Put a finished value where it belongs: the root, a list, or a mapping as key or value."""
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.weight += node.weight
        parent.count += node.count
        if node.height >= parent.height:
            parent.height = node.height + 1
        if node.fan > parent.fan:
            parent.fan = node.fan
        if isinstance(parent.value, list):
            parent.value.append(node.value)
        elif parent.key is None:
            parent.key = self._key(parent, node)
            return
        else:
            parent.value[parent.key] = node.value
            parent.key = None
        if parent.places is None:
            parent.places = Places()
        parent.places.add(node.mark, node.places)

    def _key(self, parent: _Open, node: _Node) -> str:
        # A key is its text, whatever that text would mean as a value.
        key = _as_text(node.value) if node.text is None else node.text
        line, _ = _line_and_column(node.mark)
        if len(key) > _MOST_KEY_TEXT:
            raise _fault_at(f"a key of more than {_MOST_KEY_TEXT} characters", node.mark)
        first = parent.key_lines.setdefault(key, line)
        if key in parent.value:
            raise _fault_at(f'the key "{clipped(key)}" is in this mapping already, on line {first}', node.mark)
        return key


def _as_text(key: Json) -> str:
    """A key that is not text (an alias, `{{ x }}` without quotes) as text; cut, for it is refused when it is long."""
    if isinstance(key, str):
        return key
    if isinstance(key, dict):
        inner = ", ".join(f"{name}: {_as_text(value)}"[: _MOST_KEY_TEXT + 1] for name, value in key.items())
        return f"{{{inner}}}"[: _MOST_KEY_TEXT + 1]
    if isinstance(key, list):
        return f"[{', '.join(_as_text(item) for item in key)}]"[: _MOST_KEY_TEXT + 1]
    return "null" if key is None else str(key).lower()


def _char_at(text: str, mark: Any) -> str:
    return text[mark.index : mark.index + 1]


def _mark(event: Any) -> int:
    return int(event.start_mark.line) << 32 | int(event.start_mark.column)


def _line_and_column(mark: int) -> tuple[int, int]:
    return (mark >> 32) + 1, (mark & 0xFFFFFFFF) + 1


def _fault(reason: str, event: Any) -> Unreadable:
    return _fault_at(reason, _mark(event))


def _fault_at(reason: str, mark: int) -> Unreadable:
    return Unreadable(reason, *_line_and_column(mark))
