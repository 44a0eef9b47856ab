"""Run-time state of workflows. Status changes are filtered updates whose count decides (design 3.1, 4).

JSON lives in text columns: a JSON column would reorder keys and normalise numbers, and prompts and hashes depend on
both.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

WORKSPACE = "default"


class Status(models.TextChoices):
    """Design 5.3. `RESUMED` is never on the wire: a chain reads as its newest run."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING = "awaiting_approval"
    RESUMED = "resumed"
    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


FINAL = frozenset(
    {
        Status.COMPLETED,
        Status.REJECTED,
        Status.FAILED,
        Status.EXPIRED,
        Status.CANCELLED,
        Status.INTERRUPTED,
    }
)


class SpecVersion(models.Model):
    """One text of a spec that some run started with. A run executes the text that its `spec_hash` names."""

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    agent_id = models.CharField(max_length=100)
    hash = models.CharField(max_length=64)
    text = models.TextField()
    source = models.TextField(blank=True, default="")
    first_seen = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["workspace", "hash"], name="specversion_workspace_hash"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.hash[:12]}"


class Run(models.Model):
    """One run: from its start to its first pause or end, or from a decision on to the next.

    `input`, `trigger`, `overrides`, `outputs` and `decision` are text; the last four hold JSON. While the run waits,
    its outputs live in the approval record, not here. `last_event` hands out event numbers.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    workspace = models.CharField(max_length=64, default=WORKSPACE)
    agent_id = models.CharField(max_length=100)
    spec_hash = models.CharField(max_length=64)
    source = models.TextField(blank=True, default="", help_text="Path of the spec's file when the run started.")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)

    input = models.TextField(blank=True, default="")
    trigger = models.TextField(blank=True, default="")
    overrides = models.TextField(blank=True, default="")
    outputs = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")

    step_index = models.PositiveIntegerField(default=0)
    step = models.TextField(blank=True, default="", help_text="The step that the run is at.")
    phase = models.CharField(max_length=6, default="before")
    decision = models.TextField(blank=True, default="")

    root = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="chain")
    resumed_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="successors")
    resumed_as = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    started_by = models.TextField(blank=True, default="")
    started_by_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    surface = models.CharField(max_length=16, default="api")

    purpose = models.CharField(
        max_length=12,
        blank=True,
        default="",
        db_default="",
        help_text="Empty: the workflow. `on_decision`: only what a recorded request calls on its decision.",
    )
    beside = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="companions")
    rebinds = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="How often its chain was bound to a changed spec by then: positions mean other steps since.",
    )
    held_keys = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="JSON: the keys that its `once` steps took and that a failure gives back.",
    )
    not_before = models.DateTimeField(null=True, blank=True)
    slot_target = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="The paced target whose slot at `not_before` is taken for it.",
    )
    lease_owner = models.CharField(max_length=64, blank=True, default="")
    lease_token = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    takeovers = models.PositiveSmallIntegerField(default=0)
    last_event = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField()
    queued_at = models.DateTimeField(help_text="When it last entered the queue; recovery re-sends what waits too long.")
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    pruned_at = models.DateTimeField(
        null=True, blank=True, help_text="What it read and made was removed then; what was decided on it stays."
    )

    class Meta:
        default_permissions = ("view",)
        permissions: ClassVar[Any] = [
            ("start_run", "Can start a run"),
            ("operate_run", "Can cancel, retry and give up runs"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["workspace", "id"], name="run_workspace_id"),
            models.Index(fields=["status", "lease_until"], name="run_status_lease"),
            models.Index(fields=["status", "queued_at"], name="run_status_queued"),
            models.Index(fields=["workspace", "agent_id", "id"], name="run_agent_id"),
            # The newest run of each chain that was started by itself, by which retention counts.
            models.Index(
                fields=["workspace", "agent_id", "status", "ended_at", "id"],
                condition=Q(pruned_at__isnull=True, resumed_as__isnull=True, beside__isnull=True),
                name="run_finished",
            ),
            models.Index(
                fields=["workspace", "ended_at", "id"],
                condition=Q(pruned_at__isnull=False, resumed_as__isnull=True, beside__isnull=True),
                name="run_pruned",
            ),
        ]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["resumed_from"],
                condition=Q(resumed_from__isnull=False) & ~Q(status="cancelled"),
                name="run_one_live_successor",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.uuid}"

    @property
    def root_id_or_own(self) -> int:
        """The id of the chain's first run."""
        return self.root_id or self.pk


class RunEvent(models.Model):
    """One fact of a run, numbered from 1 without a gap. Outputs are not in the payload: they are read from the run."""

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    number = models.PositiveIntegerField()
    type = models.CharField(max_length=24)
    payload = models.TextField()
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["run", "number"], name="runevent_run_number"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.number} {self.type}"


class Attempt(models.Model):
    """One call that leaves the process, committed before it is made. An open one is an effect of unknown fate."""

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    step_index = models.PositiveIntegerField()
    step = models.TextField()
    n = models.PositiveIntegerField(help_text="Number of the attempt within the run, from 1.")
    kind = models.CharField(max_length=8, choices=[("model", "model"), ("tool", "tool")])
    name = models.TextField(help_text="The tool's name, or the model's provider.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(blank=True, default="", help_text="`ok`, or the failure's message.")
    safe = models.BooleanField(default=False, db_default=False, help_text="A GET: it changes nothing where it goes.")

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["run", "n"], name="attempt_run_n"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.step} #{self.n}"


class PaceSlot(models.Model):
    """The next free slot of a paced target, and when its door is open for the next call (14.7).

    `target` is a keyed mark of host and port. Times are microseconds since 1970, by the clock of every query.
    """

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    target = models.CharField(max_length=64)
    free_at = models.BigIntegerField(db_default=0)
    open_at = models.BigIntegerField(db_default=0)

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["workspace", "target"], name="paceslot_workspace_target"),
        ]

    def __str__(self) -> str:
        return f"{self.workspace} {self.target[:12]}"


class TriggerState(models.Model):
    """When a schedule or a poll of one agent is due, and what became of the last times (spec 1.2, Triggers).

    Its filtered updates are the claims: of a due time, the one that moves `due_at` on from it, count 1; of a poll, the
    one that raises `lease_token`. Whoever has it starts the run in the same transaction. `definition` is a fingerprint
    of what says when it is due. `retry_at` puts off a due time whose run could not be started, or a poll that failed.
    `last_run` is the first run of the chain that was started last: the overlap lock is its, unless `lock_freed` says
    that an operator took it away.
    """

    KINDS: ClassVar[Any] = [("schedule", "schedule"), ("poll", "poll")]

    workspace = models.CharField(max_length=64, default=WORKSPACE)
    agent_id = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=KINDS)
    definition = models.CharField(max_length=64)
    due_at = models.DateTimeField()
    retry_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)

    last_due_at = models.DateTimeField(null=True, blank=True, help_text="The due time last started or skipped.")
    fired_at = models.DateTimeField(null=True, blank=True, help_text="When it last started a run, or polled.")
    last_run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    lock_freed = models.BooleanField(default=False)
    started = models.PositiveBigIntegerField(default=0, help_text="How many runs it started.")
    skipped = models.PositiveBigIntegerField(default=0, help_text="How many due times found a run still going.")
    skipped_at = models.DateTimeField(null=True, blank=True)
    items = models.PositiveIntegerField(null=True, blank=True, help_text="Items in the last answer of a poll.")
    new_items = models.PositiveIntegerField(null=True, blank=True, help_text="How many of them were new.")
    failures = models.PositiveIntegerField(default=0, help_text="How often in a row it failed.")
    failed_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["workspace", "agent_id"], name="trigger_workspace_agent"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["workspace", "kind", "due_at"], name="trigger_due"),
        ]
        verbose_name = "trigger"

    def __str__(self) -> str:
        return f"{self.kind} of {self.agent_id}"


class WorkerBeat(models.Model):
    """A worker process was alive at `seen_at`. Names the environment variables that it has, never their values."""

    owner = models.CharField(max_length=64, unique=True)
    workspace = models.CharField(max_length=64, default=WORKSPACE)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    environment = models.TextField(default="[]")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"
