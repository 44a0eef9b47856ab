"""Which environment variables a tool's call will read, so that a page can say before that no worker has one."""

from __future__ import annotations

from collections.abc import Iterator

from workflows.engine.references import author
from workflows.engine.values import Json
from workflows.spec import spans
from workflows.spec.model import ComponentTool, GmailTool, HttpTool, SlackTool, Spec, Tool


def environment_of(spec: Spec, tool_name: str) -> tuple[str, ...]:
    """`variables_of` the tool of that name; none for a tool that is not there."""
    tool = spec.agent.tool(tool_name)
    return () if tool is None else variables_of(tool, is_1_0=spec.is_1_0)


def variables_of(tool: Tool, *, is_1_0: bool) -> tuple[str, ...]:
    """The names that the author wrote as `${NAME}` where a tool reads them, outside of expressions.

    That is everywhere in an HTTP tool's request, and in the others only where the credential stands.
    """
    match tool:
        case HttpTool():
            parts = _request_of(tool)
        case SlackTool() | GmailTool():
            parts = [tool.token]
        case ComponentTool():
            parts = list(tool.secrets.values())
    written = (part for text in _texts(parts) for part in ([text] if is_1_0 else spans.parse(text)))
    return tuple(sorted({name for part in written if isinstance(part, str) for name in author(part).refs}))


def _request_of(tool: HttpTool) -> list[Json]:
    parts: list[Json] = [tool.url, list(tool.headers.values()), list(tool.query.values())]
    if tool.body is not None:
        parts += [tool.body.json_, list((tool.body.form or {}).values()), tool.body.raw]
    return parts


def _texts(node: Json) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
