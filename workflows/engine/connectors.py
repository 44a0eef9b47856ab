"""A Slack message or a mail: as a person is shown it, as it is hashed, as it is sent (engine semantics 15).

Only the token refers to the environment. A `${NAME}` in any other text is that text, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from workflows.engine import httpcall, mail
from workflows.engine.effects import HttpCall
from workflows.engine.httpcall import RenderedBody, RenderedRequest
from workflows.engine.references import Text, author
from workflows.engine.render11 import marked
from workflows.engine.values import Json

Action: TypeAlias = Literal["slack_post_message", "gmail_send"]

_SLACK_URL: Final = "https://slack.com/api/chat.postMessage"
_GMAIL_URL: Final = "https://gmail.googleapis.com/gmail/v1/users/me/messages/send"
#: Every answer of Slack says `ok`. One that does not is somebody else's, and the message was not posted.
_SLACK_REFUSED: Final[tuple[Json, ...]] = (
    {"path": "ok", "equals": False, "message_path": "error", "retryable": False},
    {"path": "ok", "exists": False, "retryable": False},
)
#: Visible ASCII: what goes into a header as it is. A file's last line break is the usual fault.
_TOKEN: Final = re.compile("[!-~]+")
#: The field that says where a message goes.
_PLACES: Final[Mapping[Action, str]] = {"slack_post_message": "channel", "gmail_send": "to"}


@dataclass(frozen=True, kw_only=True)
class RenderedMessage:
    """A message with all templates filled: its texts are final.

    `token` is the author's reference, `${NAME}`. `component` says how a component tool names the same (use and op).
    """

    tool: str
    action: Action
    token: str
    texts: Mapping[str, str]
    extract: str | None
    component: tuple[str, str] | None = None

    @property
    def refs(self) -> tuple[str, ...]:
        """The environment name that building needs."""
        return author(self.token).refs

    def conflict(self) -> str | None:
        """Why this message can never be sent, whatever the environment holds; None when it can (15.2)."""
        place = _PLACES[self.action]
        if not self.texts[place].strip():
            return f'Tool "{self.tool}": "{place}" is empty, so there is nowhere to send to. Nothing was sent.'
        problems = filter(None, (self._problem(field, text) for field, text in self.texts.items()))
        problem = next(problems, None)
        return None if problem is None else f'Tool "{self.tool}": {problem}. Nothing was sent.'

    def _problem(self, field: str, text: str) -> str | None:
        try:
            text.encode()
        except UnicodeEncodeError:
            return f'"{field}" holds half of a surrogate pair'
        if self.action == "slack_post_message":
            return None
        return mail.body_problem(text) if field == "body" else mail.header_problem(field, text)

    def shown(self) -> dict[str, Json]:
        """What a decider is shown: the texts as they are sent, the token as `${NAME}`."""
        return self._picture(self.token)

    def marked(self) -> dict[str, Json]:
        """The same for hashing: a reference differs from data that spells one."""
        return self._picture(marked(author(self.token)))

    def _picture(self, token: Json) -> dict[str, Json]:
        if self.component is None:
            return {"action": self.action, "tool": self.tool, **self.texts, "token": token}
        use, op = self.component
        called: dict[str, Json] = {"action": "component", "tool": self.tool, "use": use, "op": op}
        return {**called, "with": {**self.texts}, "secrets": {"token": token}}


def build(message: RenderedMessage, env: Mapping[str, str], *, approved: bool) -> HttpCall:
    """The call with the token in it; BuildFailed when there can be none. `env` has every name of `refs`."""
    conflict = message.conflict()
    if conflict is not None:
        raise httpcall.BuildFailed(conflict)
    for name in message.refs:
        if not _TOKEN.fullmatch(env[name]):
            what = f"the environment variable {name} holds a blank, a line break or another character of no token"
            raise httpcall.BuildFailed(f'Tool "{message.tool}": {what}. Nothing was sent.')
    if message.action == "slack_post_message":
        request = _request(message, _SLACK_URL, "application/json; charset=utf-8", {**message.texts}, _SLACK_REFUSED)
        return replace(httpcall.build(request, env, approved=approved), service="slack")
    request = _request(message, _GMAIL_URL, "application/json", {"raw": mail.raw(**message.texts)}, ())
    return replace(httpcall.build(request, env, approved=approved), service="gmail")


def _request(
    message: RenderedMessage, url: str, content_type: str, body: Json, rules: tuple[Json, ...]
) -> RenderedRequest:
    bearer = Text.of(("Bearer ", *author(message.token).parts))
    return RenderedRequest(
        tool=message.tool,
        method="POST",
        url=Text.of((url,)),
        headers={"Authorization": bearer, "Content-Type": Text.of((content_type,))},
        query={},
        body=RenderedBody(kind="json", content=body),
        mode="json",
        extract=message.extract,
        failure_when=rules,
        retry=None,
        pace=None,
    )
