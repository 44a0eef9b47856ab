"""Under a path prefix, such as https://example.org/kampong: requests come with it or, from some proxies, without it.

Django is told the prefix by FORCE_SCRIPT_NAME. It expects the prefix in the path under ASGI, and never under WSGI; both
are made so here, whichever way the proxy does it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage
from django.http.response import HttpResponseBase

App = Callable[..., Awaitable[None]]


def bare(path: str, prefix: str) -> str:
    """The path below the prefix, whether it came with it or not."""
    if path == prefix:
        return "/"
    return path[len(prefix) :] if path.startswith(f"{prefix}/") else path


class Prefixed:
    """An ASGI application whose requests and sockets all carry the prefix in their path."""

    def __init__(self, app: App, prefix: str | None) -> None:
        self.app = app
        self.prefix = prefix or ""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self.prefix and "path" in scope:
            whole = self.prefix + bare(scope["path"], self.prefix)
            scope = {**scope, "path": whole, "root_path": self.prefix}
        await self.app(scope, receive, send)


class PrefixedWsgi:
    """A WSGI application whose requests never carry the prefix in their path."""

    def __init__(self, app: Callable[..., Iterable[bytes]], prefix: str | None) -> None:
        self.app = app
        self.prefix = prefix or ""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self.prefix:
            environ = {**environ, "PATH_INFO": bare(environ.get("PATH_INFO", ""), self.prefix)}
        return self.app(environ, start_response)


class _Cookies(CookieStorage):
    def _update_cookie(self, encoded_data: str, response: HttpResponseBase) -> None:
        super()._update_cookie(encoded_data, response)  # type: ignore[misc]  # the stubs leave it out
        if self.cookie_name in response.cookies:
            response.cookies[self.cookie_name]["path"] = settings.SESSION_COOKIE_PATH


class Messages(FallbackStorage):
    """What a page says after a post, in a cookie that goes to nobody else at this host; Django sends it to all."""

    storage_classes = (_Cookies, SessionStorage)
