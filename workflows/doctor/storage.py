"""Whether the steps on the store will find one: they need the project's database, also in `run_spec`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connection

from statestore.models import StateRecord
from workflows.doctor.findings import Check, Patient, failed, passed, warned
from workflows.engine.storing import STEPS
from workflows.spec.errors import listed

AREA = "database"


def look(patient: Patient) -> Iterator[Check]:
    """One check for all of them; none for a spec without such steps. SQLite's file is not made by looking for it."""
    names = [f'"{step.step}"' for step in patient.spec.agent.workflow if isinstance(step, STEPS)]
    if not names:
        return
    steps = f"step{'s' if len(names) > 1 else ''} {listed(names)}"
    file = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and "memory" not in file and not Path(file).exists():
        yield warned(AREA, f"{steps}: there is no database here yet; `serve` makes it, and so does `migrate`")
        return
    try:
        StateRecord.objects.exists()
    except (DatabaseError, InterfaceError) as problem:
        line = str(problem).strip().partition("\n")[0]
        yield failed(AREA, f"{steps}: the database does not answer, or is not migrated: {line}; check DATABASE_URL")
        return
    yield passed(AREA, f"{steps}: the database is there")
