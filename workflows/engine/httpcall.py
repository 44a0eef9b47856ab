"""The request of an HTTP tool: as a person is shown it, as it is hashed, as it is sent (engine semantics 14.1, 14.2).

A rendered request holds references to the environment as references; only `build` puts values in their place, and
what it makes must never be stored or shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from workflows.engine import forms, jsontext, render11
from workflows.engine.effects import HttpCall
from workflows.engine.redact import passwords_in, redact
from workflows.engine.references import Text
from workflows.engine.render11 import Rendered
from workflows.engine.values import Json

_CONTENT_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "raw": "text/plain; charset=utf-8",
}
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+.*", re.IGNORECASE | re.ASCII | re.DOTALL)
_HEADER_BREAK = re.compile("[\r\n\x00]")


class BuildFailed(Exception):
    """The request cannot be made. The message names the tool and holds no secret."""


@dataclass(frozen=True, kw_only=True)
class RenderedBody:
    """`content`: for `json` any filled tree, for `form` a mapping of filled texts, for `raw` one filled text."""

    kind: Literal["json", "form", "raw"]
    content: Rendered
    content_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class RenderedRequest:
    """An HTTP tool with all templates filled. References stay references; the rest is final."""

    tool: str
    method: str
    url: Text
    headers: Mapping[str, Text]
    query: Mapping[str, Text]
    body: RenderedBody | None
    mode: Literal["json", "text", "bytes"]
    extract: str | None
    failure_when: tuple[Json, ...]
    retry: Json | None
    pace: Json | None

    @property
    def refs(self) -> tuple[str, ...]:
        """Every environment name that building needs, each once, in order."""
        body = self.body.content if self.body else None
        return render11.refs([self.url, dict(self.headers), dict(self.query), body])

    def conflict(self) -> str | None:
        """Why this tool can never be called, whatever the environment holds; None when it can (14.2)."""
        if self.method == "GET" and self.body is not None:
            return f'Tool "{self.tool}": a GET request cannot send a body.'
        if self.extract is not None and self.mode != "json":
            return f'Tool "{self.tool}": extract needs json answers, and the response mode is {self.mode}.'
        return None

    def shown(self) -> dict[str, Json]:
        """What a decider is shown: references as `${NAME}`, absent parts left out, nothing that Kampong adds."""
        return self._picture(render11.shown)

    def marked(self) -> dict[str, Json]:
        """The same for hashing: a reference differs from data that spells one."""
        return self._picture(render11.marked)

    def _picture(self, leaf: Callable[[Rendered], Json]) -> dict[str, Json]:
        picture = {"action": "http_request", "tool": self.tool, "method": self.method, "url": leaf(self.url)}
        for name, texts in (("headers", self.headers), ("query", self.query)):
            if texts:
                picture[name] = {key: leaf(text) for key, text in texts.items()}
        if self.body is not None:
            body: dict[str, Json] = {self.body.kind: leaf(self.body.content)}
            if self.body.content_type is not None:
                body["content_type"] = self.body.content_type
            picture["body"] = body
        return picture


def build(request: RenderedRequest, env: Mapping[str, str], *, approved: bool) -> HttpCall:
    """The request with environment values in it; BuildFailed when there can be none. `env` has every name of `refs`."""
    secrets = frozenset(env[name] for name in request.refs)
    conflict = request.conflict()
    if conflict is not None:
        raise BuildFailed(conflict)
    try:
        headers = _headers(request, env)
        body = _body(request, env)
        url = _url(request, env, secrets)
    except UnicodeEncodeError:
        # Without its cause, which keeps the whole text with its secrets.
        raise BuildFailed(f'Tool "{request.tool}": the request holds half of a surrogate pair.') from None
    return HttpCall(
        tool=request.tool,
        method=request.method,
        url=url,
        headers=headers,
        body=body,
        mode=request.mode,
        extract=request.extract,
        failure_when=request.failure_when,
        retry=request.retry,
        pace=request.pace,
        secrets=secrets | passwords_in(url),
        approved=approved,
    )


def _url(request: RenderedRequest, env: Mapping[str, str], secrets: frozenset[str]) -> str:
    url = request.url.resolve(env)
    url.encode()
    if not request.query:
        return url
    if not _ABSOLUTE.fullmatch(url):
        shown = redact(url, secrets | passwords_in(url))
        raise BuildFailed(f'Tool "{request.tool}": query parameters need an absolute URL, not "{shown}".')
    address, mark, fragment = url.partition("#")
    joint = "?" if "?" not in address else "" if address[-1] in "?&" else "&"
    return f"{address}{joint}{forms.joined(_resolved(request.query, env))}{mark}{fragment}"


def _resolved(texts: Mapping[str, Text], env: Mapping[str, str]) -> list[tuple[str, str]]:
    pairs = [(name, text.resolve(env)) for name, text in texts.items()]
    for name, text in pairs:
        (name + text).encode()
    return pairs


def _headers(request: RenderedRequest, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    headers = _resolved(request.headers, env)
    for name, value in headers:
        if _HEADER_BREAK.search(value):
            raise BuildFailed(f'Tool "{request.tool}": the value of header {name} holds a line break or a NUL.')
    if request.body is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", request.body.content_type or _CONTENT_TYPES[request.body.kind]))
    return tuple(headers)


def _body(request: RenderedRequest, env: Mapping[str, str]) -> bytes | None:
    if request.body is None:
        return None
    content: Any = render11.resolved(request.body.content, env)
    if request.body.kind == "json":
        return jsontext.dumps(content).encode()
    if request.body.kind == "form":
        return forms.joined(_resolved(request.body.content, env)).encode()
    return str(content).encode()
