"""Requests that wait for a person, what was decided, and its proof (design 4)."""

from __future__ import annotations

from typing import Any, ClassVar

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
    request was opened.
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
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.step}"


class Vote(models.Model):
    """One person's approval of a request that needs several, for exactly what its digest shows and these answers.

    `answers` is canonical JSON, with the defaults of the form; empty where the policy has no form.
    """

    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="votes")
    user_id = models.BigIntegerField()
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


class AuditEntry(models.Model):
    """One act of a person or a rule; append only, no foreign keys.

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
