"""What a webhook has to prove, and which delivery is a repeat of an earlier one (spec 1.2, Triggers).

Signatures are those of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`) and of GitHub
(`X-Hub-Signature-256`). Both are over the bytes of the body as they came, before anything reads them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
import re
from collections.abc import Mapping
from typing import Final

from statestore.clock import now
from statestore.conf import value as setting
from workflows.actors import Actor
from workflows.adapters import evaluator
from workflows.engine import render11
from workflows.engine.effects import Evaluate, ExpressionFailed
from workflows.engine.scope import scope
from workflows.engine.situation import Trigger
from workflows.engine.values import NOTHING, Json
from workflows.engine.vars import VarsError, names_needed, resolve
from workflows.errors import Invalid, NotAuthenticated
from workflows.headers import passed_on
from workflows.idempotency import Delivery
from workflows.spec.model import Spec, reference_name
from workflows.spec.trigger_model import WebhookTrigger

logger = logging.getLogger("kampong.webhooks")

TOLERANCE_SECONDS: Final = 300
PREFIX: Final = "whsec_"
SETTING: Final = "KAMPONG_WEBHOOK_SECRETS"
STANDARD: Final = "webhook-signature"
GITHUB: Final = "x-hub-signature-256"
UNPROVEN: Final = (
    "this is not signed with the secret of this webhook, or was signed more than five minutes away from now: sign the "
    "bytes of the body as they are sent"
)

#: No full stop: it ends the id in what is signed, and the same bytes must not be read in two ways.
_ID = re.compile(r"[!-\-/-~]{1,255}")
_TIME = re.compile(r"[0-9]{1,12}")
#: What joins a header that was sent twice; no signature holds it.
_TWICE = ", "
_QUOTED = 120


# Who sent it -------------------------------------------------------------------------------------------------


def secret_variable(spec: Spec) -> str | None:
    """The variable with the secret of this agent's webhook; None where a token or a session starts its runs.

    The file names it (1.2), or the setting KAMPONG_WEBHOOK_SECRETS does (1.0 and 1.1).
    """
    if not spec.is_1_2:
        named: str | None = setting(SETTING).get(spec.agent.id)
        return named
    trigger = spec.agent.trigger
    secret = trigger.secret if isinstance(trigger, WebhookTrigger) else None
    return reference_name(secret) if secret is not None else None


def problem_with(secret: str) -> str:
    """Why nothing can be verified with this secret, in words that do not repeat it; empty when it can be used."""
    if not secret.strip():
        return "is not set or empty"
    return "" if _standard_key(secret) else f"begins with {PREFIX} and is no base64 after it"


def is_signed(headers: Mapping[str, str]) -> bool:
    """Whether the sender means to have signed it. The names are in lower case."""
    return STANDARD in headers or GITHUB in headers


def check_signature(agent_id: str, variable: str, headers: Mapping[str, str], body: bytes) -> None:
    """NotAuthenticated unless these bytes are signed with the secret in the variable, at most five minutes from now.

    `headers` have lower-case names. Where both kinds of signature are given, the one of Standard Webhooks counts. The
    answer is the same whatever is wrong; the log says what an operator can mend.
    """
    secret = os.environ.get(variable, "")
    if problem := problem_with(secret):
        logger.warning("a webhook of %s is refused: the environment variable %s %s", agent_id, variable, problem)
        raise NotAuthenticated(UNPROVEN)
    fits = _fits_standard if STANDARD in headers else _fits_github
    if not fits(secret, headers, body):
        raise NotAuthenticated(UNPROVEN)
    if STANDARD not in headers:
        return  # GitHub signs no time
    away = int(headers["webhook-timestamp"]) - int(now().timestamp())
    if abs(away) > TOLERANCE_SECONDS:
        logger.warning("a webhook of %s is refused: its time is %s s away from this machine's clock", agent_id, away)
        raise NotAuthenticated(UNPROVEN)


def sender(agent_id: str) -> Actor:
    """Who acts when a signature says where a delivery comes from: no user."""
    return Actor(label=f"webhook of {agent_id}", surface="webhook", detail="signed")


def _fits_standard(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of the signatures is `v1` and ours; other versions are passed over."""
    name, time, given = headers.get("webhook-id", ""), headers.get("webhook-timestamp", ""), headers[STANDARD]
    if not _ID.fullmatch(name) or not _TIME.fullmatch(time) or _TWICE in given:
        return False
    signed = f"{name}.{time}.".encode("ascii") + body
    wanted = b"v1," + base64.b64encode(hmac.new(_standard_key(secret), signed, hashlib.sha256).digest())
    return any(hmac.compare_digest(wanted, _raw(one)) for one in given.split(" "))


def _fits_github(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    wanted = b"sha256=" + hmac.new(_raw(secret), body, hashlib.sha256).hexdigest().encode("ascii")
    return hmac.compare_digest(wanted, _raw(headers.get(GITHUB, "")))


def _standard_key(secret: str) -> bytes:
    """The bytes that `whsec_` introduces in base64; without it the secret's own. Empty when there are none."""
    if not secret.startswith(PREFIX):
        return _raw(secret)
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# Which delivery it is ----------------------------------------------------------------------------------------


def delivery(spec: Spec, *, input: str, headers: Mapping[str, str]) -> Delivery | None:
    """What tells this delivery from others: the trigger's `dedupe` with its expressions in place; None without one.

    Raises Invalid when an expression fails, or comes to nothing, null or blank text: all such deliveries would be
    repeats of each other. Not to be called inside a transaction: expressions take their time.
    """
    trigger = spec.agent.trigger
    if not isinstance(trigger, WebhookTrigger) or trigger.dedupe is None:
        return None
    sources = render11.collect(trigger.dedupe)
    given = Trigger(headers=passed_on(headers.items()))
    read = scope(spec, {}, given, input, _vars(spec, sources))
    outcome = evaluator.shared().evaluate(Evaluate(sources=sources, scope=read))
    if isinstance(outcome, ExpressionFailed):
        raise _no_key(f"the expression failed: {outcome.reason.rstrip('.')}", sources[outcome.index])
    for source, value in zip(sources, outcome.values, strict=True):
        if value is NOTHING or value is None:
            raise _no_key(f"the expression came to {'nothing' if value is NOTHING else 'null'}", source)
    key = render11.fill_plain(trigger.dedupe, outcome.values)
    if not key.strip():
        raise _no_key("it came to an empty text", trigger.dedupe)
    return Delivery(key=key, seconds=trigger.dedupe_ttl)


def _vars(spec: Spec, sources: tuple[str, ...]) -> dict[str, Json]:
    """The spec's vars, where the template reads them; a sender is never told what the environment holds."""
    if not any("vars" in source for source in sources):
        return {}
    try:
        return resolve(spec, {}, {name: os.environ.get(name) for name in names_needed(spec, {})})
    except VarsError:
        raise _no_key("it reads vars, and not all of them have a value here", "vars") from None


def _no_key(why: str, source: str) -> Invalid:
    message = f"{why}: {source.strip()[:_QUOTED]}"
    told = f"which delivery this is cannot be told by the trigger's dedupe, so nothing was started: {message}"
    return Invalid(told, [{"path": "trigger.dedupe", "message": message}])
