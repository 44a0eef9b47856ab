"""A workflow that starts by itself can be started by hand as well, at every door."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test.utils import override_settings

from tests.approvals.policies import text_of, written
from tests.conftest import People
from tests.surfaces.api.conftest import with_token
from tests.surfaces.cli.running import command
from workflows.models import Run, Status

pytestmark = pytest.mark.django_db(transaction=True)

TRIGGERS = [
    '{type: webhook, secret: "${HOOK}"}',
    '{type: schedule, cron: "0 8 * * *", timezone: UTC, input: go}',
    "{type: poll, every: 1m, tool: look, items: rows, key: id}",
]


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_over_rest_and_at_the_command_line(tmp_path: Path, people: People, trigger: str) -> None:
    text = text_of("{step: sign, type: approval}").replace("  workflow:", f"  trigger: {trigger}\n  workflow:")
    spec = written(tmp_path, text)
    assert command("check_spec", str(spec.path)).code == 0
    with override_settings(KAMPONG_SPECS=[str(tmp_path)]):
        answer = with_token(people.requester).post("/runs", {"agent": "clerk", "input": "go"})
    assert answer.status_code == 201, answer.content
    assert Run.objects.get().status == Status.QUEUED
    assert command("run_spec", str(spec.path), "--input", "go", "--detach", "--json").code == 3
    assert Run.objects.count() == 2
