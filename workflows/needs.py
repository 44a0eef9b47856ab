"""Which environment variables a tool's call will read, so that a page can say before that no worker has one."""

from __future__ import annotations

from collections.abc import Iterator

from workflows.engine.references import author
from workflows.engine.values import Json
from workflows.spec.model import HttpTool, Spec


def environment_of(spec: Spec, tool_name: str) -> tuple[str, ...]:
    """The names that the author wrote as `${NAME}` in an HTTP tool; none for a tool that is not there."""
    tool = spec.agent.tool(tool_name)
    if not isinstance(tool, HttpTool):
        return ()
    body = tool.body
    parts: list[Json] = [tool.url, list(tool.headers.values()), list(tool.query.values())]
    if body is not None:
        parts += [body.json_, list((body.form or {}).values()), body.raw]
    return tuple(sorted({name for text in _texts(parts) for name in author(text).refs}))


def _texts(node: Json) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
