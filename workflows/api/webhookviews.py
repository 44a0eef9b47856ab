"""`POST /webhook/<agent id>`: whatever comes becomes the run's input (engine semantics 18)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from workflows import registry, runs
from workflows.api import bodies
from workflows.api.authentication import need_permission
from workflows.api.endpoint import Endpoint
from workflows.api.idempotency import idempotency_key
from workflows.api.runviews import START, started
from workflows.engine import jsontext
from workflows.errors import AgentNotFound, Invalid, SpecBroken
from workflows.registry import SpecFile


class Webhook(Endpoint):
    """With an agent id, or without one where a single spec is served. Senders may add query parameters."""

    query = None

    def post(self, request: Request, agent_id: str | None = None) -> Response:
        body = request._request.body
        text = input_of(request.content_type, body)
        headers = headers_of(request)
        key = idempotency_key(request, self.caller)
        need_permission(self.caller, START)
        spec_file = registry.registry().find(agent_id) if agent_id is not None else the_only_spec()
        run = runs.start_run(
            spec_file, input=text, headers=headers, actor=self.caller.actor("webhook"), idempotency_key=key
        )
        return started(run, self.caller)


def input_of(content_type: str | None, body: bytes) -> str:
    """JSON as its compact text, a JSON text as that text, any other type as it came; Invalid for broken JSON."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != bodies.JSON_TYPE:
        return bodies.text_of(body)
    return jsontext.as_text(bodies.json_of(body))


def headers_of(request: Request) -> dict[str, str]:
    """Lower-case names; repeated ones joined by comma and blank. Credentials are left out by `start_run`.

    Names with an underscore are dropped, as Django does: they can pass for one with a hyphen.
    """
    scope = getattr(request._request, "scope", None)
    if scope is None:
        pairs = list(request.headers.items())
    else:
        pairs = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"]]
    joined: dict[str, str] = {}
    for name, text in pairs:
        lower = name.lower()
        if "_" in lower:
            continue
        joined[lower] = f"{joined[lower]}, {text}" if lower in joined else text
    for name, text in joined.items():
        if "\x00" in text:
            raise Invalid(f"the header {name} holds a NUL character", [{"path": name, "message": "NUL character"}])
    return joined


def the_only_spec() -> SpecFile:
    """The one served spec. AgentNotFound when it would have to be named, SpecBroken when it is no good."""
    served, broken = registry.registry().files(), registry.registry().broken()
    if len(served) == 1 and not broken:
        return served[0]
    if not served and len(broken) == 1:
        file = broken[0]
        raise SpecBroken(
            f"the only spec is broken, so no new run starts: {file.path}: {file.message}",
            errors=[{"path": error.where, "message": error.message} for error in file.errors],
        )
    names = ", ".join(sorted(file.agent_id for file in served)) or "none"
    raise AgentNotFound(f"say which agent: POST /webhook/<agent id>; served: {names}")
