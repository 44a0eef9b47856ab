"""The approval policy of a spec, typed (spec 1.2, Approvals). Times are seconds."""

from __future__ import annotations

from typing import Literal

from workflows.spec.model_base import Json, Part


class Approvers(Part):
    """`users` and `groups` are None where nobody narrowed who may decide: the permission alone counts."""

    users: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    quorum: int = 1
    four_eyes: bool = False
    delegate: bool = False


class Escalation(Part):
    after: int
    groups: tuple[str, ...]


class OnDecision(Part):
    """Names of tools."""

    approved: str | None = None
    rejected: str | None = None

    def of(self, approved: bool) -> str | None:
        """The tool that is called on this answer."""
        return self.approved if approved else self.rejected


class Auto(Part):
    """Expressions, and the name of the tool that checks."""

    approve_if: str | None = None
    reject_if: str | None = None
    check: str | None = None


class SlackChannel(Part):
    """`token` is a reference as written, `${NAME}`."""

    type: Literal["slack"] = "slack"
    token: str
    channel: str


class EmailChannel(Part):
    type: Literal["email"] = "email"
    to: tuple[str, ...]


class Policy(Part):
    """What holds for one gate. Without a word in the spec: whoever holds the permission, once, within the setting.

    `expires_in` None is the setting; `on_expire_tool` is the tool's name when `on_expire` is `execute_tool`. `notify`
    None is `agent.approval_notifier`.
    """

    approvers: Approvers = Approvers()
    form: dict[str, Json] | None = None
    editable: tuple[str, ...] = ()
    require_reason: Literal["never", "reject", "always"] = "never"
    expires_in: int | None = None
    on_expire: Literal["expire", "reject", "fail", "execute_tool"] = "expire"
    on_expire_tool: str | None = None
    remind_every: int | None = None
    escalate: Escalation | None = None
    on_decision: OnDecision = OnDecision()
    on_reject: Literal["stop", "continue"] = "stop"
    mode: Literal["gate", "record"] = "gate"
    auto: Auto = Auto()
    recall: int | None = None
    valid_for: int | None = None
    digest: Literal["optional", "required"] = "optional"
    notify: tuple[SlackChannel | EmailChannel, ...] | None = None

    @property
    def goes_on_after_no(self) -> bool:
        """Whether a rejection leaves something to do, so that the run is entered again with it."""
        return self.on_reject == "continue" or self.on_decision.rejected is not None
