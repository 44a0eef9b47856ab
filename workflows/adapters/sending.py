"""Getting the answer to a tool's request: send it, follow what may be followed (engine semantics 14, design 6).

Exactly one attempt; retries and pacing are the driver's, judging the answer is `http`'s.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import httpx2

from statestore import conf
from workflows.adapters import wire
from workflows.adapters.wire import MIB, Answer
from workflows.engine import judging
from workflows.engine.effects import HttpCall, ToolFailed
from workflows.engine.redact import MARK, redact

SIZE_LIMIT: Final = 4 * MIB
REDIRECTS: Final = 5
_REDIRECTING: Final = frozenset({301, 302, 303, 307, 308})
_FOLLOWED_METHODS: Final = frozenset({"GET", "HEAD"})
_AUTHORITY: Final = re.compile(r"[^/?#]*//([^/?#]*)")
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
_OF_THE_BODY: Final = frozenset({"content-length", "transfer-encoding", "host"})
#: Services with a base address of their own: the one that a call is written for, and the setting that says where it is.
SERVICES: Final = {
    "slack": ("https://slack.com/api", "KAMPONG_SLACK_API_URL"),
    "gmail": ("https://gmail.googleapis.com", "KAMPONG_GMAIL_API_URL"),
}


class Source(Protocol):
    """Where the answers to tool calls come from: the wire, or a recording of it."""

    def answer(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> Answer | ToolFailed:
        """One attempt. `deadline_check` runs right before each request; what it raises comes through."""


class Sender:
    """Sends calls within the operator's limits. Thread safe; one for the process is enough."""

    def __init__(self, *, timeout: float | None = None, private_addresses: Iterable[str] | None = None) -> None:
        """Limits that are not given are the settings KAMPONG_TOOL_TIMEOUT and KAMPONG_PRIVATE_ADDRESSES."""
        allowed = conf.value("KAMPONG_PRIVATE_ADDRESSES") if private_addresses is None else private_addresses
        self._timeout: float = conf.value("KAMPONG_TOOL_TIMEOUT") if timeout is None else timeout
        self._wire = wire.wire_for(tuple(allowed))

    def answer(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> Answer | ToolFailed:
        """The whole answer, or why there is none."""
        try:
            return self._follow(call, time.monotonic() + self._timeout, deadline_check)
        except wire.Unsendable as problem:
            return judging.failed(call, f"{problem}{_by_setting(call)}.", failure="build")
        except wire.AddressRefused as problem:
            return judging.failed(call, f"was not sent: {_veiled(call, str(problem))}.", failure="build")
        except wire.TooLong:
            what = f"was answered with more than {SIZE_LIMIT // MIB} MiB, which is the limit."
            return judging.failed(call, what, failure="http")
        except wire.Unreadable as problem:
            return judging.failed(call, f"was answered, but {problem}.", failure="http")
        except wire.NoAnswer as problem:
            return judging.no_answer(call, self._why_no_answer(call, problem))

    def _follow(self, call: HttpCall, until: float, deadline_check: Callable[[], None]) -> Answer | ToolFailed:
        url, headers, body = wire.address(_placed(call)), call.headers, call.body
        exchange = (self._wire if call.service is None else wire.wire_for(("*",))).exchange
        for hop in range(REDIRECTS + 1):
            answer = exchange(
                call.method, url, headers=headers, body=body, until=until, cap=SIZE_LIMIT, before_send=deadline_check
            )
            location = answer.headers.get("location", "")
            if answer.status not in _REDIRECTING or not location:
                return answer
            target = _target(url, location)
            refusal = _why_not_followed(call, target, hop)
            if target is None or refusal:
                return _not_followed(call, answer, target, refusal)
            headers = _headers_for(call, headers, url, target)
            url, body = target, None
        raise AssertionError("the loop ends with an answer")

    def _why_no_answer(self, call: HttpCall, problem: wire.NoAnswer) -> str:
        if problem.timed_out:
            limit = f"{self._timeout:g} seconds"
            return f"it took longer than {limit}, the limit for one call (setting KAMPONG_TOOL_TIMEOUT)."
        return f"{_veiled(call, str(problem))}{_by_setting(call)}."


def _veiled(call: HttpCall, text: str) -> str:
    """A text that names a host as the wire spells it: in lower case or punycode, where no secret is recognised."""
    found = _AUTHORITY.match(call.url)
    if found and any(secret in found[1] for secret in call.secrets if secret):
        url = wire.address(call.url)
        for host in (url.host, url.raw_host.decode("ascii")):
            text = text.replace(host, MARK)
    return redact(text, {secret.lower() for secret in call.secrets})


def _placed(call: HttpCall) -> str:
    """The address to send to. An operator may have said where a service is; that address needs no guard."""
    if call.service is None:
        return call.url
    written, setting = SERVICES[call.service]
    return str(conf.value(setting)).rstrip("/") + call.url.removeprefix(written)


def _by_setting(call: HttpCall) -> str:
    """Words for the end of a message when the call went elsewhere than its url says. The address may hold a secret."""
    if call.service is None:
        return ""
    written, setting = SERVICES[call.service]
    return "" if conf.value(setting) == written else f" (it goes to the address in {setting})"


# Redirects ---------------------------------------------------------------------------------------------------


def _target(url: httpx2.URL, location: str) -> httpx2.URL | None:
    """Where the answer points, or None when that is no http address."""
    try:
        return wire.address(str(url.join(location)))
    except (wire.Unsendable, httpx2.InvalidURL, UnicodeError, ValueError):
        return None


def _why_not_followed(call: HttpCall, target: httpx2.URL | None, hop: int) -> str:
    if target is None:
        return "that is not an http address"
    if call.approved:
        return "the call was approved for its own address only"
    if call.method not in _FOLLOWED_METHODS:
        return f"redirects of {call.method} are not followed"
    if hop == REDIRECTS:
        return f"{REDIRECTS} redirects were followed already"
    return ""


def _not_followed(call: HttpCall, answer: Answer, target: httpx2.URL | None, refusal: str) -> ToolFailed:
    # Without user, query and fragment: a server puts its own secrets there, which we could not recognise.
    shown = (
        f"{target.scheme}://{_veiled(call, _place(target))}{target.path}"
        if target is not None
        else "an unusable address"
    )
    status = f"{answer.status} {answer.reason}".strip()
    what = f"was answered with status {status}: a redirect to {shown}, which was not followed because {refusal}."
    return judging.failed(call, what, failure="http")


def _place(url: httpx2.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port is None else f"{host}:{url.port}"


def _headers_for(
    call: HttpCall, headers: tuple[tuple[str, str], ...], url: httpx2.URL, target: httpx2.URL
) -> tuple[tuple[str, str], ...]:
    """What travels on: nothing of a body, and no credential to another host or out of TLS."""
    kept = tuple(header for header in headers if header[0].lower() not in _OF_THE_BODY)
    if (url.scheme, _place(url)) == (target.scheme, _place(target)):
        return kept
    return tuple((name, value) for name, value in kept if not _is_credential(call, name, value))


def _is_credential(call: HttpCall, name: str, value: str) -> bool:
    return name.lower() in _CREDENTIALS or any(secret in value for secret in call.secrets if secret)
