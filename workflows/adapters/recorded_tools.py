"""Tool calls recorded and replayed: the two sources of answers besides the wire (engine semantics 16).

A call that got no answer is recorded as well, as the failure that it was, so that a replay fails where the run failed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from workflows.adapters import fixtures
from workflows.adapters.fixtures import Fixtures, Unusable
from workflows.adapters.redacting import Redactor
from workflows.adapters.sending import Source
from workflows.adapters.wire import Answer
from workflows.engine import jsontext, judging
from workflows.engine.effects import HttpCall, ToolFailed
from workflows.engine.values import NOTHING, Json

_BODILESS: Final = frozenset({204, 205, 304})
#: A tuple: what stands in a file need not be hashable.
_FAILURES: Final = ("rate_limit", "auth", "timeout", "http", "failure_when", "build")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A call as its fixture knows it: without headers, without secrets. `body` is None where there is none."""

    tool: str
    method: str
    url: str
    body: str | None

    @classmethod
    def of(cls, call: HttpCall, hidden: Redactor) -> Request:
        """The call's, with what `hidden` hides taken out, so that it is the same under another secret."""
        hidden = hidden.for_keys()
        body = _body_of(call, hidden) if call.body else None
        return cls(tool=call.tool, method=call.method, url=hidden.text(call.url), body=body)

    @property
    def file(self) -> str:
        """The name of the fixture's file."""
        parts = [self.tool, self.method, self.url]
        if self.body is not None:
            parts.append(_sha256(self.body))
        return fixtures.file_name(self.tool, _sha256("::".join(parts)))

    def content(self) -> dict[str, Json]:
        """What its fixture says of the request; `requestBody` is the text whose hash is part of the key."""
        said = {"toolName": self.tool, "method": self.method, "url": self.url}
        return said if self.body is None else {**said, "requestBody": self.body}


def _body_of(call: HttpCall, hidden: Redactor) -> str:
    """Redacted; canonical when it is JSON, so that neither blanks nor the order of keys count."""
    text, value = hidden.document((call.body or b"").decode("utf-8", "replace"))
    if call.service == "gmail" and isinstance(value, dict) and isinstance(value.get("raw"), str):
        value = {**value, "raw": _mail(value["raw"], hidden)}
    return text if value is NOTHING else jsontext.canonical(value)


def _mail(raw: str, hidden: Redactor) -> str:
    """The mail with what it must not hold taken out of its text: in base64url nobody would find it."""
    try:
        mail = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
    except ValueError:
        return raw
    clean = hidden.bytes(mail)
    return raw if clean == mail else base64.urlsafe_b64encode(clean).rstrip(b"=").decode("ascii")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# Recording -----------------------------------------------------------------------------------------------------


class RecordingSource:
    """Passes each call on, and keeps what came of it."""

    def __init__(self, source: Source, folder: Fixtures, secrets: Iterable[str]) -> None:
        """`secrets` are hidden besides those of the request itself."""
        self._source = source
        self._folder = folder
        self._hidden = Redactor(secrets)

    def answer(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> Answer | ToolFailed:
        """What the source answers. The call fails when that cannot be kept: a run with holes cannot be repeated."""
        answer = self._source.answer(call, deadline_check=deadline_check)
        hidden = self._hidden.also(call.secrets)
        request = Request.of(call, hidden)
        said = _failure(answer, hidden) if isinstance(answer, ToolFailed) else _answer(answer, hidden)
        try:
            self._folder.write(request.file, {**request.content(), **said})
        except Unusable as problem:
            return judging.failed(call, f"was made, but not recorded: {problem}.", failure="http")
        return answer


def _failure(failed: ToolFailed, hidden: Redactor) -> dict[str, Json]:
    told = {"error": hidden.text(failed.error), "failure": failed.failure, "retryable": failed.retryable}
    return {"status": None, "failed": told, "body": None}


def _answer(answer: Answer, hidden: Redactor) -> dict[str, Json]:
    kept: dict[str, Json] = {"status": answer.status}
    if answer.reason != _usual_reason(answer.status):
        kept["statusText"] = hidden.text(answer.reason)
    text = _as_text(answer.body)
    if text is None:
        raw = base64.b64encode(hidden.bytes(answer.body)).decode("ascii")
        kept |= {"body": None, "bodyRaw": raw, "bodyFormat": "base64"}
    else:
        shown, value = hidden.document(text)
        kept |= {"body": shown if value is NOTHING else value, "bodyRaw": shown, "bodyFormat": "utf8"}
    kind = answer.headers.get("content-type")
    return kept if kind is None else {**kept, "contentType": hidden.text(kind)}


def _as_text(body: bytes) -> str | None:
    """The text of a body, None for a binary one. A NUL makes it binary: no JSON of ours holds one."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _usual_reason(status: int) -> str:
    return http.client.responses.get(status, "")


# Replaying -----------------------------------------------------------------------------------------------------


class ReplayingSource:
    """Answers from recordings alone; nothing is ever sent."""

    def __init__(self, folder: Fixtures, secrets: Iterable[str]) -> None:
        self._folder = folder
        self._hidden = Redactor(secrets)

    def answer(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> Answer | ToolFailed:
        """What was recorded for this request."""
        request = Request.of(call, self._hidden.also(call.secrets))
        try:
            kept = self._folder.read(request.file)
            if kept is None:
                return judging.no_answer(call, self._miss(request))
            return _replayed(kept)
        except Unusable as problem:
            return judging.failed(call, f"cannot be replayed: {problem}.", failure="http")
        except ValueError as problem:
            where = self._folder.folder / request.file
            what = f"cannot be replayed: the fixture {where} is broken: {problem}. Record it again."
            return judging.failed(call, what, failure="http")

    def _miss(self, request: Request) -> str:
        where = self._folder.folder / request.file
        of_body = " The body of the request is part of the name." if request.body is not None else ""
        return f"it was never recorded, there is no fixture {where}. Record it first with --tools record.{of_body}"


def _replayed(kept: dict[str, Json]) -> Answer | ToolFailed:
    """ValueError for what no recording of ours says."""
    if "failed" in kept:
        return _replayed_failure(kept["failed"])
    status = kept.get("status")
    if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 999:
        raise ValueError("it has no status")
    kind, reason = kept.get("contentType"), kept.get("statusText", _usual_reason(status))
    if not isinstance(kind, str | None) or not isinstance(reason, str):
        raise ValueError("contentType and statusText must be texts")
    headers = {} if kind is None else {"content-type": kind}
    body = b"" if status in _BODILESS else _replayed_body(kept)
    return Answer(status=status, reason=reason, headers=headers, body=body)


def _replayed_body(kept: dict[str, Json]) -> bytes:
    if "bodyRaw" not in kept:
        if "body" not in kept:
            raise ValueError("it has neither bodyRaw nor body")
        return jsontext.dumps(kept["body"]).encode()
    raw = kept["bodyRaw"]
    if not isinstance(raw, str):
        raise ValueError("bodyRaw must be a text")
    match kept.get("bodyFormat", "utf8"):
        case "utf8":
            return raw.encode()
        case "base64":
            try:
                return base64.b64decode(raw, validate=True)
            except binascii.Error as problem:
                raise ValueError("bodyRaw is not base64") from problem
        case _:
            raise ValueError("bodyFormat must be utf8 or base64")


def _replayed_failure(told: Any) -> ToolFailed:
    known = isinstance(told, dict) and told.get("failure") in _FAILURES
    if not known or not isinstance(told.get("error"), str) or not isinstance(told.get("retryable"), bool):
        raise ValueError("the failure in it is none that is known")
    return ToolFailed(error=told["error"], failure=told["failure"], retryable=told["retryable"])
