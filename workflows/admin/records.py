"""Spec versions and worker processes, to look at."""

from __future__ import annotations

import json

from django.contrib import admin
from django.utils.html import format_html

from statestore.clock import now
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import ago, visible
from workflows.beats import ALIVE_SECONDS
from workflows.models import SpecVersion, WorkerBeat


class SpecVersionAdmin(ReadOnlyAdmin[SpecVersion]):
    """The texts that runs were started with, and are executed by."""

    list_display = ["agent_id", "short_hash", "first_seen"]
    search_fields = ["agent_id", "hash"]
    search_help_text = "Agent or hash"
    ordering = ["-pk"]
    fields = ["agent_id", "hash", "source", "first_seen", "shown_text"]
    readonly_fields = ["shown_text"]

    @admin.display(description="Hash")
    def short_hash(self, version: SpecVersion) -> str:
        return version.hash[:12]

    @admin.display(description="Text")
    def shown_text(self, version: SpecVersion) -> str:
        return format_html('<pre class="k-code">{}</pre>', visible(version.text))


class WorkerBeatAdmin(ReadOnlyAdmin[WorkerBeat]):
    """Which worker processes live. Of their environment only the names of variables are known."""

    list_display = ["host", "pid", "is_alive", "last_seen", "started_at"]
    ordering = ["-seen_at", "-pk"]
    fields = ["host", "pid", "owner", "started_at", "seen_at", "variables"]
    readonly_fields = ["variables"]

    @admin.display(description="Alive", boolean=True)
    def is_alive(self, beat: WorkerBeat) -> bool:
        return (now() - beat.seen_at).total_seconds() <= ALIVE_SECONDS

    @admin.display(description="Last seen")
    def last_seen(self, beat: WorkerBeat) -> str:
        return ago(beat.seen_at)

    @admin.display(description="Environment variables (names)")
    def variables(self, beat: WorkerBeat) -> str:
        return ", ".join(json.loads(beat.environment))
