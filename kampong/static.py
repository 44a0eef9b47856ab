"""WhiteNoise under ASGI: files are answered whole, and other requests pass without a detour through a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # the package has no types
    """WhiteNoise's own answer is a synchronous stream, which ASGI servers warn about and read in a thread anyway."""

    sync_capable = True
    async_capable = True
    #: What the finders found, by prefix: a process looks through the apps' folders once, for all its handlers.
    _found: ClassVar[dict[str, dict[str, StaticFile]]] = {}

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def add_files_from_finders(self) -> None:
        """The apps' files."""
        if self.static_prefix not in self._found:
            super().add_files_from_finders()
            self._found[self.static_prefix] = dict(self.files)
        self.files.update(self._found[self.static_prefix])

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if iscoroutinefunction(self):
            return self._later(request)
        answer: HttpResponseBase = super().__call__(request)
        return answer

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        found = self.files.get(request.path_info)
        if found is not None:
            return await sync_to_async(self.serve, thread_sensitive=False)(found, request)
        answer: HttpResponseBase = await self.get_response(request)
        return answer

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The file, or the part of it that was asked for."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        answer = HttpResponse(content, status=int(found.status))
        del answer["Content-Type"]
        for name, value in found.headers:
            answer[name] = value
        return answer
