"""What all JSON views share: the order of checks, strict JSON out, the one error shape (design 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.http import HttpRequest
from django.urls import URLPattern, path
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workflows.api import bodies
from workflows.api.authentication import SIGN_IN, Caller, Credentials
from workflows.api.errors import CONTENT_TYPE, failure_of, finished
from workflows.engine import jsontext
from workflows.errors import Invalid, NotAuthenticated


class StrictJson(BaseRenderer):
    """JSON as the rest of the house writes it: integers keep their digits, no NaN."""

    media_type = CONTENT_TYPE
    format = "json"
    charset = None
    render_style = "binary"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else jsontext.dumps(data).encode("utf-8")


class OnlyJson(BaseContentNegotiation):
    """JSON, whatever the client would have liked."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class Endpoint(APIView):
    """A view that translates in, calls one service and translates out.

    Before a handler runs, the body is read within its limit and the caller is known. The handler checks the body's
    shape, then the permission, then calls.
    """

    authentication_classes = [Credentials]
    permission_classes = []
    throttle_classes = []
    renderer_classes = [StrictJson]
    parser_classes = []
    content_negotiation_class = OnlyJson
    #: Query parameters that are known; None where any is let through.
    query: ClassVar[tuple[str, ...] | None] = ()

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.body_error: Exception | None = None
        try:
            if not bodies.take_body(request):
                self.body_error = bodies.too_large()
        except Invalid as error:
            self.body_error = error
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if not isinstance(request.auth, Caller):
            raise NotAuthenticated(SIGN_IN)
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        if self.body_error is not None:
            raise self.body_error
        self._check_query(request)

    def _check_query(self, request: Request) -> None:
        if self.query is None:
            return
        known = ", ".join(self.query) or "none"
        unknown = [name for name in request.query_params if name not in self.query]
        if unknown:
            raise Invalid(
                f"unknown query parameter {', '.join(unknown)}; known: {known}",
                [{"path": name, "message": f"unknown query parameter; known: {known}"} for name in unknown],
            )
        for name, text in request.query_params.items():
            if "\x00" in text:
                raise Invalid(f"{name}: holds a NUL character", [{"path": name, "message": "holds a NUL character"}])

    @property
    def caller(self) -> Caller:
        """Who calls; set once `initial` has passed."""
        caller = self.request.auth
        if not isinstance(caller, Caller):
            raise NotAuthenticated(SIGN_IN)
        return caller

    def json_object(self, fields: Mapping[str, bodies.Field]) -> dict[str, Any]:
        """The body's fields; see `bodies.json_object`."""
        return bodies.json_object(self.request._request, fields)

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """The methods in `Allow`, and nothing else."""
        return Response(status=204)

    def handle_exception(self, exc: Exception) -> Response:
        answer = failure_of(exc)
        return Response(answer.body, status=answer.status, headers=answer.headers)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        whole = super().finalize_response(request, response, *args, **kwargs)
        finished(whole)
        return whole


def answer(status: int = 200, /, **facts: Any) -> Response:
    """`{success: true, ...}`."""
    return Response({"success": True, **facts}, status=status)


def both(route: str, view: Callable[..., Any], name: str) -> list[URLPattern]:
    """The route without and with a slash at its end; the name belongs to the first."""
    return [path(route, view, name=name), path(f"{route}/", view)]
