"""The workflows app in the Django admin: runs, triggers, spec versions and workers, to look at and to operate."""

from __future__ import annotations

from django.contrib import admin

from workflows.admin.records import SpecVersionAdmin, WorkerBeatAdmin
from workflows.admin.runs import RunAdmin
from workflows.admin.triggers import TriggerStateAdmin
from workflows.models import Run, SpecVersion, TriggerState, WorkerBeat

admin.site.register(Run, RunAdmin)
admin.site.register(SpecVersion, SpecVersionAdmin)
admin.site.register(TriggerState, TriggerStateAdmin)
admin.site.register(WorkerBeat, WorkerBeatAdmin)
