"""A webhook of an agent that nobody calls is refused, and says how the agent starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import People
from tests.surfaces.api.conftest import Caller, with_token
from tests.triggers.scheduling import scheduled
from tests.workflows.test_doctor import found, patient
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
SCHEDULE = 'schedule, cron: "0 8 * * mon-fri"'
POLL = "poll, every: 5m, tool: look, items: rows, key: id"


@pytest.mark.parametrize(
    ("trigger", "words"),
    [(SCHEDULE, "(0 8 * * mon-fri), UTC)"), (POLL, "by its poll (every 5m with look)")],
)
@pytest.mark.parametrize("path", ["/webhook/clerk", "/webhook"])
def test_it_says_how_the_agent_starts(folder: Path, people: People, trigger: str, words: str, path: str) -> None:
    tools = '  tools:\n    - {name: look, action: http_request, method: GET, url: "http://127.0.0.1:9/"}\n'
    file = scheduled(folder, "0 8 * * mon-fri", tools=tools)
    file.path.write_text(file.path.read_text().replace(SCHEDULE, trigger))
    answer = with_token(people.requester).post(path, {"any": "thing"})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (409, "not_possible"), body
    assert words in body["error"]
    assert "POST /runs" in body["error"]
    assert not Run.objects.exists()
    assert Caller().post(path, {}).status_code == 401
    assert with_token(people.stranger).post(path, {}).status_code == 403


def test_the_doctor_says_when_a_schedule_is_due_next() -> None:
    trigger = '  trigger: {type: schedule, cron: "0 8 * * *", timezone: Asia/Singapore}\n'
    (message,) = found(patient(trigger + "  model: {provider: ollama, name: m}\n", "1.2"), "pass", "schedule")
    assert "08:00 in Asia/Singapore" in message
    assert "T00:00:00.000Z" in message
