"""While models and tools take their time no transaction is open, and other people decide as quickly as ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from approvals.models import ApprovalRequest
from tests.conftest import People, Processes, database_url
from tests.counts import count
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.races.watching import watching
from tests.served import Served, until
from tests.workbench import ASKING, HEAD, begin, to_pause, write_spec
from workflows.models import FINAL, Run, Status

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = count(3, 20)
RUNS = 10
DECISIONS = 6

#: think (a slow model) - send (a slow tool).
THINKING = HEAD.replace("name: test-model", 'name: test-model, base_url: "{models}"') + (
    """\
  tools:
    - {{name: send, action: http_request, method: POST, url: "{tools}/send", body: {{json: {{of: "{{{{ think }}}}"}}}}}}
  workflow:
    - {{step: think, type: action, action: Think}}
    - {{step: send, type: tool, tool: send}}
"""
)


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels({"think": {"hang": SLOW, "object": "a thought"}}) as server:
        yield server


@pytest.fixture
def slow_tools() -> Iterator[FakeTools]:
    with FakeTools({"POST /send": {"hang": SLOW, "json": {"ok": True}}}) as server:
        yield server


def test_slow_calls_hold_no_transaction_and_decisions_answer_meanwhile(
    folder: Path,
    models: FakeModels,
    slow_tools: FakeTools,
    people: People,
    manage: Processes,
    report: Callable[[str], None],
) -> None:
    asking = write_spec(folder, ASKING.replace("{{{{ input }}}}", "it"), agent_id="asker", name="asking.yaml")
    thinking = write_spec(folder, THINKING, models=models.url, tools=slow_tools.url)
    keys = [to_pause(asking)[1] for _ in range(DECISIONS)]
    served = Served(manage, folder, str(folder), "--workers", str(RUNS))
    runs = [begin(thinking) for _ in range(RUNS)]
    took = []
    with watching(database_url()) as watch, served.as_token(people.approver) as approver:
        for place, key in enumerate(keys):
            # Half while the models think, half while the tools work.
            until(lambda: models.count("think") == RUNS, SLOW + 60)
            if place >= DECISIONS // 2:
                until(lambda: len(slow_tools.requests) == RUNS, SLOW + 60)
            begun = time.monotonic()
            answer = approver.post(f"/approvals/{key}/approve?wait=0", json={"approved": place % 2 == 0})
            took.append(time.monotonic() - begun)
            assert answer.status_code == 200, answer.text
        ids = [run.pk for run in runs]
        until(lambda: Run.objects.filter(pk__in=ids, status__in=FINAL).count() == RUNS, 2 * SLOW + 60)
    assert set(Run.objects.filter(pk__in=ids).values_list("status", flat=True)) == {Status.COMPLETED}
    assert watch.longest < count(SLOW - 1, 1), f"a transaction was open for {watch.longest:.2f} s: {watch.who}"
    assert watch.looks > 10
    assert max(took) < count(SLOW - 1, 2), took
    assert ApprovalRequest.objects.filter(key__in=keys, status="decided").count() == DECISIONS
    assert served.trouble() == []
    report(
        f"{RUNS} runs with models and tools of {SLOW} s each: no transaction was older than {watch.longest * 1000:.0f} "
        f"ms; {DECISIONS} decisions meanwhile took at most {max(took) * 1000:.0f} ms"
    )
