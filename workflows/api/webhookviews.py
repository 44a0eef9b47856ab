"""`POST /webhook/<agent id>`: whatever comes becomes the run's input (engine semantics 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from workflows import registry, runs, webhooks
from workflows.api import bodies
from workflows.api.authentication import need_permission
from workflows.api.endpoint import Endpoint
from workflows.api.idempotency import idempotency_key
from workflows.api.runviews import START, started
from workflows.engine import jsontext
from workflows.errors import AgentNotFound, Invalid, NotAuthenticated, NotPossible, Refusal, SpecBroken
from workflows.registry import SpecFile
from workflows.triggers import words
from workflows.triggers.state import timed


class Webhook(Endpoint):
    """With an agent id, or without one where a single spec is served. Senders may add query parameters.

    Where the agent's webhook has a secret, a signature is the only way in: a token beside it is not looked at.
    """

    query = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.sent = headers_of(request)
        self.found = spec_of(kwargs.get("agent_id"))
        self.signed = request.method == "POST" and self._check_signature(request)
        if not self.signed:
            super().initial(request, *args, **kwargs)

    def _check_signature(self, request: Request) -> bool:
        """Whether a signature says who sends this; False where a token or a session has to.

        Raises NotAuthenticated, and for a body that was not read to its end what is wrong with it.
        """
        signed = webhooks.is_signed(self.sent)
        if isinstance(self.found, SpecBroken) and signed:
            # With the file its secret is gone: the sender is told to come again, and nothing else.
            raise SpecBroken("the spec of this webhook is broken, so no new run starts; send it again later", errors=[])
        variable = webhooks.secret_variable(self.found.spec) if isinstance(self.found, SpecFile) else None
        if variable is None or not isinstance(self.found, SpecFile):
            return False
        if not signed:
            raise NotAuthenticated(webhooks.UNPROVEN)
        if self.body_error is not None:
            raise self.body_error
        webhooks.check_signature(self.found.agent_id, variable, self.sent, request._request.body)
        return True

    def post(self, request: Request, agent_id: str | None = None) -> Response:
        refuse_nul(self.sent)
        text = input_of(request.content_type, request._request.body)
        caller = None if self.signed else self.caller
        key = idempotency_key(request, caller)
        if caller is not None:
            need_permission(caller, START)
        if isinstance(self.found, Refusal):
            raise self.found
        refuse_timed(self.found)
        run = runs.start_run(
            self.found,
            input=text,
            headers=self.sent,
            actor=webhooks.sender(self.found.agent_id) if caller is None else caller.actor("webhook"),
            idempotency_key=key,
            delivery=webhooks.delivery(self.found.spec, input=text, headers=self.sent),
        )
        return started(run, caller)


def spec_of(agent_id: str | None) -> SpecFile | SpecBroken | AgentNotFound:
    """The spec of this agent, or why there is none: who asks is told only when they may know."""
    try:
        return registry.registry().find(agent_id) if agent_id is not None else the_only_spec()
    except (SpecBroken, AgentNotFound) as refusal:
        return refusal


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
    return joined


def refuse_timed(file: SpecFile) -> None:
    """NotPossible for an agent that nobody calls: what it reads of its trigger would not be there."""
    trigger = timed(file)
    if trigger is None:
        return
    raise NotPossible(
        f"agent {file.agent_id!r} is started by its {trigger.type} ({words.when(file.spec)}), and not by a webhook; "
        f'to start a run by hand: POST /runs {{"agent": "{file.agent_id}", "input": TEXT}}'
    )


def refuse_nul(headers: Mapping[str, str]) -> None:
    """Invalid for a header that no database can hold."""
    for name, text in headers.items():
        if "\x00" in text:
            raise Invalid(f"the header {name} holds a NUL character", [{"path": name, "message": "NUL character"}])


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
