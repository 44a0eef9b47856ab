"""The checks that contact somebody, each only when it was asked for.

`online` connects to the host of every tool and of the model, with TLS where it is https, and closes: no request is
sent. `probe` makes the smallest request that needs the key, and changes nothing: the model's entry in the provider's
list, and Slack's `auth.test`. Tools of the spec are never called, for nobody knows what their calls do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import httpcore2
import httpx2

from statestore import conf
from workflows.adapters import models, wire
from workflows.adapters.addresses import AddressRefused, PrivateAddresses
from workflows.adapters.guard import Deadline, DeadlineBackend
from workflows.adapters.models import WireClient
from workflows.adapters.sending import SERVICES
from workflows.doctor import addresses
from workflows.doctor.addresses import Place
from workflows.doctor.findings import Check, Patient, failed, passed, warned
from workflows.engine import components, jsontext
from workflows.errors import ModelUnavailable
from workflows.spec.errors import listed
from workflows.spec.model import ComponentTool, GmailTool, HttpTool, SlackTool, Tool, reference_name

SECONDS: Final = 10.0
#: More would keep a person waiting for longer than the answer is worth.
MOST_HOSTS: Final = 30
_WORD: Final = re.compile(r"[a-z0-9_.-]{1,60}")

# Connecting ---------------------------------------------------------------------------------------------------


def online(patient: Patient) -> Iterator[Check]:
    """Whether each host can be reached, under the rules of a call: the operator's list of private addresses holds."""
    places = _places(patient)
    if len(places) > MOST_HOSTS:
        yield warned("network", f"{len(places) - MOST_HOSTS} more hosts were not tried: {MOST_HOSTS} are the most")
    for place, names in islice(places.items(), MOST_HOSTS):
        yield _reached(place, f"{_called_by(names)}: ", conf.value("KAMPONG_PRIVATE_ADDRESSES"))
    for service in sorted({service for tool in patient.tools() if (service := _service(tool)) is not None}):
        if patient.mode != "replay":
            base = str(conf.value(SERVICES[service][1]))
            yield _base_reached(base, f"{service} ({SERVICES[service][1]}): ")
    client = _client(patient)
    if client is not None:
        yield _base_reached(client.base, f"the model of {client.name}: ")


def _places(patient: Patient) -> dict[Place, list[str]]:
    """The hosts of the http tools, each once, with the tools that call it; none for those that are replayed."""
    found: dict[Place, list[str]] = {}
    for tool in patient.tools() if patient.mode != "replay" else ():
        place = addresses.place(patient, tool) if isinstance(tool, HttpTool) else None
        if place is not None:
            found.setdefault(place, []).append(tool.name)
    return found


def _called_by(names: list[str]) -> str:
    quoted = listed((f'"{name}"' for name in names), most=10)
    return f"tool{'s' if len(names) > 1 else ''} {quoted}"


def _base_reached(base: str, who: str) -> Check:
    try:
        url = wire.address(base)
    except wire.Unsendable as problem:
        return failed("network", f"{who}its address {problem}")
    port = url.port or (443 if url.scheme == "https" else 80)
    place = Place(scheme=url.scheme, host=url.host, port=port, shown=f"{url.host}:{port}")
    # Who writes these addresses may mean a private one, as with the calls themselves.
    return _reached(place, who, ["*"])


def _reached(place: Place, who: str, allowed: list[str]) -> Check:
    try:
        _connect(place, allowed)
    except AddressRefused as problem:
        return failed("network", f"{who}{str(problem).replace(place.host, place.shown)}")
    except (httpcore2.TimeoutException, httpcore2.NetworkError, OSError) as problem:
        why = str(problem).replace(place.host, place.shown) or "no answer"
        return failed("network", f"{who}{place.shown} cannot be reached: {why}")
    return passed("network", f"{who}{place.shown} can be reached")


def _connect(place: Place, allowed: list[str]) -> None:
    """Connect, shake hands where it is https, and close."""
    deadline = Deadline()
    deadline.at = time.monotonic() + SECONDS
    stream = DeadlineBackend(PrivateAddresses(allowed), deadline).connect_tcp(place.host, place.port)
    try:
        if place.scheme == "https":
            stream = stream.start_tls(httpx2.create_ssl_context(trust_env=False), place.host)
    finally:
        stream.close()


# Asking -------------------------------------------------------------------------------------------------------


def probe(patient: Patient) -> Iterator[Check]:
    """Whether the keys are taken and the model is there."""
    client = _client(patient)
    if client is not None:
        yield _model(client)
    told: set[str] = set()
    for tool in patient.tools() if patient.mode != "replay" else ():
        name = _slack_token(tool)
        if name is not None and name not in told and patient.has(name):
            told.add(name)
            yield _slack(name, patient.environ[name])


def _client(patient: Patient) -> WireClient | None:
    """The model's client; None where there is none, which another check tells."""
    try:
        client = models.client_for(patient.spec, patient.environ)
    except ModelUnavailable:
        return None
    return client if isinstance(client, WireClient) else None


#: The smallest read that needs the key, or that names the model. OpenRouter lists its models to everybody.
_READS: Final = {
    "openai": "/models/{model}",
    "anthropic": "/v1/models/{model}",
    "openrouter": "/key",
    "ollama": "/api/tags",
}


def _model(client: WireClient) -> Check:
    path = _READS[client.name].format(model=quote(client.model, safe=""))
    try:
        answer = _ask("GET", client.base + path, client.provider.format.credentials(client.key))
    except _Silent as problem:
        return failed("model", f"{client.name} was asked and did not answer: {problem}")
    said = _said(answer)
    if answer.status in (401, 403):
        key = f"the key in {client.key_name}" if client.key_name else "a call without a key"
        return failed("model", f"{client.name} refuses {key} (status {answer.status})")
    if answer.status == 404 and isinstance(said, dict) and "error" in said and "{model}" in _READS[client.name]:
        return failed("model", f"{client.name} takes the key and does not know the model {client.model}")
    if not 200 <= answer.status <= 299:
        return warned("model", f"{client.name} answers, and does not tell (status {answer.status} of GET {path})")
    if client.name == "ollama":
        return _local(client, said)
    known = " and knows the model" if "{model}" in _READS[client.name] else ""
    return passed("model", f"{client.name} takes the key{known}")


def _local(client: WireClient, said: Any) -> Check:
    models_there = said.get("models") if isinstance(said, dict) else None
    if not isinstance(models_there, list):
        return warned("model", "ollama answers, and does not list its models")
    names = {entry.get("name") for entry in models_there if isinstance(entry, dict)}
    wanted = client.model if ":" in client.model else f"{client.model}:latest"
    if wanted in names or client.model in names:
        return passed("model", f"ollama has the model {client.model}")
    return failed("model", f"ollama has no model {client.model}; get it with: ollama pull {client.model}")


def _slack(name: str, token: str) -> Check:
    base = str(conf.value(SERVICES["slack"][1])).rstrip("/")
    try:
        answer = _ask("POST", f"{base}/auth.test", [("Authorization", f"Bearer {token}")])
    except _Silent as problem:
        return failed("tools", f"Slack was asked whether it takes {name} and did not answer: {problem}")
    said = _said(answer)
    if not isinstance(said, dict) or "ok" not in said:
        return warned("tools", f"Slack answers, and does not tell whether it takes {name} (status {answer.status})")
    if said["ok"] is True:
        return passed("tools", f"Slack takes the token in {name}")
    error = said.get("error")
    why = error if isinstance(error, str) and _WORD.fullmatch(error) and token not in error else "no reason given"
    return failed("tools", f"Slack refuses the token in {name}: {why}")


class _Silent(Exception):
    """Nobody answered; the text says why, without the address."""


def _ask(method: str, url: str, headers: list[tuple[str, str]]) -> wire.Answer:
    until = time.monotonic() + SECONDS
    body = b"" if method == "POST" else None
    try:
        return wire.wire_for(("*",)).exchange(
            method, wire.address(url), headers=headers, body=body, until=until, cap=wire.MIB
        )
    except (wire.Unsendable, wire.AddressRefused, wire.NoAnswer) as problem:
        raise _Silent(str(problem)) from problem
    except wire.TooLong as problem:
        raise _Silent("more than a list of models") from problem


def _said(answer: wire.Answer) -> Any:
    try:
        return jsontext.loads(answer.body.decode("utf-8"))
    except ValueError:
        return None


# Whose service a tool calls -----------------------------------------------------------------------------------


def _service(tool: Tool) -> str | None:
    match tool:
        case SlackTool():
            return "slack"
        case GmailTool():
            return "gmail"
        case ComponentTool() if components.problem(tool) is None:
            return "slack" if components.op_of(tool).action == "slack_post_message" else "gmail"
        case _:
            return None


def _slack_token(tool: Tool) -> str | None:
    """The variable of a tool that posts to Slack."""
    if isinstance(tool, SlackTool):
        return reference_name(tool.token)
    if isinstance(tool, ComponentTool) and _service(tool) == "slack":
        return reference_name(tool.secrets["token"])
    return None
