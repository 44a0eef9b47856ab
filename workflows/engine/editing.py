"""Changing what waits for an approval, within what its policy lets people change (spec 1.2, `editable`).

An edited text is data: it is never read as a template or a reference. The type of a value stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workflows.engine import paths
from workflows.engine.connectors import RenderedMessage
from workflows.engine.httpcall import RenderedRequest
from workflows.engine.references import Text
from workflows.engine.render11 import Data, Rendered
from workflows.engine.values import NOTHING, Json, Outputs
from workflows.spec.shapes import kind_of

_OF_THE_ACTION = "action"


class EditRefused(ValueError):
    """An edit that cannot be made; `path` is the editable path as the caller gave it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def edited_outputs(outputs: Outputs, edits: Mapping[str, Json]) -> Outputs:
    """The outputs with the edits of earlier steps in place; the ones given stay as they were."""
    changed = dict(outputs)
    for path, value in edits.items():
        step, *rest = paths.segments(path)
        if step == _OF_THE_ACTION:
            continue
        if changed.get(step, NOTHING) is NOTHING:
            raise EditRefused(path, f'there is no output of a step "{step}" here')
        changed[step] = _edited(changed[step], rest, value, path)
    return changed


def of_outputs(edits: Mapping[str, Json]) -> dict[str, Json]:
    """Those of earlier outputs; the others are of the action itself."""
    return {path: value for path, value in edits.items() if paths.segments(path)[0] != _OF_THE_ACTION}


def edited_request(
    request: RenderedRequest | RenderedMessage, edits: Mapping[str, Json]
) -> RenderedRequest | RenderedMessage:
    """The request with the edits of its action in place."""
    for path, value in edits.items():
        first, *rest = paths.segments(path)
        if first != _OF_THE_ACTION:
            continue
        if isinstance(request, RenderedMessage):
            request = _edited_message(request, rest, value, path)
        else:
            request = _edited_call(request, rest, value, path)
    return request


def _edited(value: Json, segments: list[str], new: Json, path: str) -> Json:
    """The tree with one value replaced by one of the same type."""
    if not segments:
        if kind_of(value) != kind_of(new):
            raise EditRefused(path, f"it is {kind_of(value)} and must stay one, not become {kind_of(new)}")
        return new
    key, *rest = segments
    if isinstance(value, Mapping) and key in value:
        return {name: _edited(item, rest, new, path) if name == key else item for name, item in value.items()}
    if isinstance(value, list) and _is_position(key) and int(key) < len(value):
        return [_edited(item, rest, new, path) if at == int(key) else item for at, item in enumerate(value)]
    raise EditRefused(path, "there is nothing at this place")


def _edited_message(message: RenderedMessage, segments: list[str], new: Json, path: str) -> RenderedMessage:
    if message.component is not None and segments[:1] == ["with"]:
        segments = segments[1:]
    if len(segments) != 1 or segments[0] not in message.texts:
        raise EditRefused(path, f"of this message {', '.join(message.texts)} can be changed")
    return replace(message, texts=_edited(dict(message.texts), segments, new, path))


def _edited_call(request: RenderedRequest, segments: list[str], new: Json, path: str) -> RenderedRequest:
    match segments:
        case ["url"]:
            return replace(request, url=_text(request.url, new, path))
        case ["headers", name] if name in request.headers:
            return replace(request, headers={**request.headers, name: _text(request.headers[name], new, path)})
        case ["query", name] if name in request.query:
            return replace(request, query={**request.query, name: _text(request.query[name], new, path)})
        case ["body", kind, *rest] if request.body is not None and kind == request.body.kind:
            content = _edited_rendered(request.body.content, rest, new, path)
            return replace(request, body=replace(request.body, content=content))
    raise EditRefused(path, "there is nothing at this place of the action that can be changed")


def _edited_rendered(node: Rendered, segments: list[str], new: Json, path: str) -> Rendered:
    """The same in a filled tree, whose texts hold references and whose values may be whole trees of data."""
    if isinstance(node, Data):
        return Data(_edited(node.value, segments, new, path))
    if isinstance(node, Text):
        if segments:
            raise EditRefused(path, "there is nothing at this place")
        return _text(node, new, path)
    if not segments and isinstance(node, Mapping | list):
        raise EditRefused(path, "name a value inside it: not every part of it is text or a number")
    if segments and isinstance(node, Mapping) and segments[0] in node:
        changed: dict[str, Any] = dict(node)
        changed[segments[0]] = _edited_rendered(node[segments[0]], segments[1:], new, path)
        return changed
    if segments and isinstance(node, list) and _is_position(segments[0]) and int(segments[0]) < len(node):
        at = int(segments[0])
        return [_edited_rendered(item, segments[1:], new, path) if at == n else item for n, item in enumerate(node)]
    return _edited(node, segments, new, path)


def _is_position(key: str) -> bool:
    """Whether the key of a path can count items: digits, and of those the plain ones alone."""
    return key.isascii() and key.isdigit()


def _text(text: Text, new: Json, path: str) -> Text:
    """Data in place of the text. Whoever leaves a reference standing in it means it as one, and it would be none."""
    if not isinstance(new, str):
        raise EditRefused(path, f"it is a string and must stay one, not become {kind_of(new)}")
    kept = [name for name in text.refs if f"${{{name}}}" in new]
    if kept:
        raise EditRefused(
            path,
            f"${{{kept[0]}}} in it is filled in from the environment, and nothing of a changed text is; write what is"
            " meant in its place, or leave this text as it is",
        )
    return Text.of((new,))
