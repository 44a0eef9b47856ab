"""Requests that wait for a person, what was decided, and its proof (design 4)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from knox.models import AbstractAuthToken

from workflows.models import WORKSPACE, Run


class RequestStatus(models.TextChoices):
    OPEN = "open"
    DECIDED = "decided"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"


class ApprovalRequest(models.Model):
    """The queue's indexable side of the record `approval:<key>`: written and closed in the same transactions.

    The claim is still the store's delete; nothing here decides who won. `policy` is the one it was opened under, as
    JSON. `mode` `record` is a request that no run waits for. `doubt` says why nobody could satisfy the policy when the
    request was opened. `revision` counts what changed since: an edit, a rebind, a vote, an end. Until `recall_until` an
    approval can be withdrawn.
    """

    key = models.UUIDField(unique=True, editable=False)
    workspace = models.CharField(max_length=64, default=WORKSPACE)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="requests")
    agent_id = models.CharField(max_length=100)
    step = models.TextField()
    step_index = models.PositiveIntegerField()
    kind = models.CharField(max_length=10)
    phase = models.CharField(max_length=6)
    reason = models.TextField()
    tool = models.TextField(blank=True, default="")
    policy = models.TextField(blank=True, default="{}")
    # With defaults of the database: a process of the version before writes rows without these columns.
    mode = models.CharField(max_length=8, default="gate", db_default="gate")
    doubt = models.TextField(blank=True, default="", db_default="")
    digest = models.CharField(max_length=80)
    spec_hash = models.CharField(max_length=64)
    status = models.CharField(max_length=10, choices=RequestStatus.choices, default=RequestStatus.OPEN)
    reopened_from = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0, db_default=0)
    remind_at = models.DateTimeField(null=True, blank=True)
    escalate_at = models.DateTimeField(null=True, blank=True)
    escalated_at = models.DateTimeField(null=True, blank=True)
    recall_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        permissions: ClassVar[Any] = [
            ("view_request", "Can see approval requests"),
            ("decide", "Can decide approval requests"),
            ("rebind", "Can rebind a request to a changed spec"),
            ("break_glass", "Can lift four eyes and quorum with a reason"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["workspace", "status", "id"], name="request_queue"),
            models.Index(fields=["status", "expires_at"], name="request_expiry"),
            models.Index(fields=["workspace", "agent_id", "status", "id"], name="request_agent"),
            models.Index(fields=["workspace", "status", "created_at"], name="request_age"),
            models.Index(fields=["status", "remind_at"], name="request_remind"),
            models.Index(fields=["status", "escalate_at"], name="request_escalate"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.step}"


class Vote(models.Model):
    """One person's approval of a request that needs several, for exactly what its digest shows and these answers.

    `answers` is canonical JSON, with the defaults of the form; empty where the policy has no form. `for_user_id` is
    whoever handed the request to the voter, or is away: both count as one person.
    """

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="votes")
    user_id = models.BigIntegerField()
    for_user_id = models.BigIntegerField(null=True, blank=True)
    label = models.TextField()
    digest = models.CharField(max_length=80)
    answers = models.TextField(blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="")
    surface = models.CharField(max_length=16)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["request", "user_id"], name="vote_person"),
        ]

    def __str__(self) -> str:
        return self.label


class Audience(models.Model):
    """One group or user to which a request's policy narrows it; where it names none, it waits for everybody.

    `later` is a group to which it is escalated, `proxy` (without a name) says that it can be handed on. For the
    filters of the queue; who may decide is the policy's to say.
    """

    KINDS: ClassVar[Any] = [(kind, kind) for kind in ("user", "group", "later", "proxy")]

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="audience")
    kind = models.CharField(max_length=5, choices=KINDS)
    name = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        default_permissions = ()
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["kind", "name", "request"], name="audience_name"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Edit(models.Model):
    """A change that somebody proposed to what waits; `edits` maps editable paths to all values that stand, as JSON.

    `digest` is that of the action with it.
    """

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="edits")
    user_id = models.BigIntegerField()
    label = models.TextField()
    edits = models.TextField()
    digest = models.CharField(max_length=80)
    reason = models.TextField(blank=True, default="")
    surface = models.CharField(max_length=16)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.label


class Delegation(models.Model):
    """One request in the hands of another user: who may decide it handed it on. It cannot be handed on again."""

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="delegations")
    from_user_id = models.BigIntegerField()
    from_label = models.TextField()
    to_user_id = models.BigIntegerField()
    to_label = models.TextField()
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["request", "from_user_id", "to_user_id"], name="delegation_once"),
        ]

    def __str__(self) -> str:
        return f"{self.from_label} to {self.to_label}"


class Absence(models.Model):
    """While `user` is away, `substitute` may decide what lets itself be handed on (`approvers.delegate`)."""

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="absences")
    substitute = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["substitute", "ends_at"], name="absence_substitute"),
        ]

    def __str__(self) -> str:
        return f"{self.user} until {self.ends_at:%Y-%m-%d}"


class Look(models.Model):
    """Somebody opened the whole of what a page shows clipped; `digest` says which version of it."""

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="looks")
    user_id = models.BigIntegerField()
    digest = models.CharField(max_length=80)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["request", "user_id", "digest"], name="look_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.at}"


class SlackUser(models.Model):
    """A Slack account that decides as a Django user."""

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    team = models.CharField(max_length=32)
    slack_id = models.CharField(max_length=32)
    name = models.CharField(max_length=200, blank=True, default="")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="slack_users")
    linked_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view", "delete")
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["workspace", "team", "slack_id"], name="slackuser_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name or self.slack_id} as {self.user}"


class NoticeStatus(models.TextChoices):
    WAITING = "waiting"
    SENT = "sent"
    DROPPED = "dropped"
    FAILED = "failed"


class Notice(models.Model):
    """One message that is to leave: the outbox. Written in the transaction of what it tells, sent after its commit.

    `channel` is `slack` or `email`; `address` is where to, as JSON (`{token, channel}` with the token's reference, or
    `{user}` or `{to}`). `about` says what happened; what is said is made when it is sent, from what is true then.
    `revision` is that of the request when it was written: the sender drops what is out of date. `sent_as` is what the
    service calls the message (JSON), so that it can be changed later.
    """

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    request = models.ForeignKey(
        ApprovalRequest, null=True, blank=True, on_delete=models.CASCADE, related_name="notices"
    )
    channel = models.CharField(max_length=8, choices=[("slack", "Slack"), ("email", "email")])
    address = models.TextField()
    about = models.CharField(max_length=16)
    facts = models.TextField(blank=True, default="{}")
    revision = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=8, choices=NoticeStatus.choices, default=NoticeStatus.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    held_until = models.DateTimeField(null=True, blank=True, help_text="A sender has it until then.")
    error = models.TextField(blank=True, default="")
    sent_as = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ("view",)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["status", "due_at"], name="notice_due"),
        ]

    def __str__(self) -> str:
        return f"{self.channel}: {self.about}"


class AuditEntry(models.Model):
    """One act of a person or a rule; append only, no foreign keys.

    `details` is what else belongs to the act, as JSON (the values edited, whom it was handed to, a broken glass).
    `own_hash` is over the entry's content; the sealer links committed entries into one chain a workspace (`seal_no`,
    `previous`, `sealed_hash`) after they are committed.
    """

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    act = models.CharField(max_length=16)
    outcome = models.CharField(max_length=16, blank=True, default="")
    key = models.CharField(max_length=36, blank=True, default="", db_index=True)
    run = models.CharField(max_length=36, db_index=True)
    successor = models.CharField(max_length=36, blank=True, default="")
    agent_id = models.CharField(max_length=100)
    step = models.TextField(blank=True, default="")
    actor = models.TextField()
    actor_user_id = models.BigIntegerField(null=True, blank=True)
    actor_detail = models.TextField(blank=True, default="")
    surface = models.CharField(max_length=16)
    reason = models.TextField(blank=True, default="")
    digest = models.CharField(max_length=80, blank=True, default="")
    digest_sent = models.BooleanField(default=False)
    spec_hash = models.CharField(max_length=64)
    answers = models.TextField(blank=True, default="")
    policy = models.TextField(blank=True, default="")
    details = models.TextField(blank=True, default="", db_default="")
    at = models.DateTimeField()
    own_hash = models.CharField(max_length=64)

    seal_no = models.PositiveBigIntegerField(null=True, blank=True)
    previous = models.CharField(max_length=64, blank=True, default="")
    sealed_hash = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        default_permissions = ("view",)
        verbose_name_plural = "audit entries"
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["workspace", "seal_no"], name="audit_workspace_seal"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["seal_no", "id"], name="audit_unsealed"),
        ]

    def __str__(self) -> str:
        return f"{self.act} {self.agent_id} by {self.actor}"


class AuditSeal(models.Model):
    """The end of one workspace's chain: how many entries are sealed and the last sealed hash."""

    workspace = models.CharField(max_length=64, unique=True, default=WORKSPACE)
    last_no = models.PositiveBigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.workspace}: {self.last_no}"


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # knox ships no types
    """A token for the HTTP interface, stored hashed; shown once when it is made."""

    name = models.CharField(max_length=100, blank=True, default="")

    class Meta:
        default_permissions = ("view", "delete")
        verbose_name = "API token"

    def __str__(self) -> str:
        # Knox's own names the hash, and the admin prints it where a user is deleted.
        return f"{self.name or '(no name)'} of {self.user}"
