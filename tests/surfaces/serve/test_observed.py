"""What an operator's tools see of a real `serve`: its log as objects, its numbers on a port of its own."""

from __future__ import annotations

import json
import socket
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client import generate_latest
from pytest_django import Settings

from approvals.tokens import create_token
from statestore.keys import shown
from tests.conftest import People
from tests.surfaces.serve.conftest import Ended, Served, until
from tests.workbench import ASKING, key_of, write_spec
from workflows.api.exposition import Counted, registry_of
from workflows.management.metricsport import metrics_port
from workflows.models import Run, Status

pytestmark = pytest.mark.django_db(transaction=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def told_at(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def test_a_run_can_be_followed_through_the_log_and_the_numbers_of_its_process(
    tmp_path: Path, people: People, serve: Callable[..., Served]
) -> None:
    write_spec(tmp_path, ASKING)
    port = free_port()
    observed = {"LOG_LEVEL": "INFO", "KAMPONG_LOG_FORMAT": "json", "KAMPONG_METRICS_PORT": str(port)}
    served = serve(tmp_path, **observed)

    def post(path: str, body: Any, request_id: str, user: Any) -> Any:
        headers = {"Authorization": f"Bearer {create_token(user, 't')}", "X-Request-ID": request_id}
        headers["Content-Type"] = "application/json"
        with urlopen(Request(served.url + path, json.dumps(body).encode(), headers), timeout=60) as answer:
            assert answer.headers["X-Request-ID"] == request_id
            return json.load(answer)

    started = post("/runs", {"agent": "clerk", "input": ""}, "starting-1", people.requester)["id"]
    until(lambda: Run.objects.get(uuid=started).status == Status.AWAITING)
    key = key_of(Run.objects.get(uuid=started))
    decided = post(f"/approvals/{key}/approve", {"approved": False}, "deciding-1", people.approver)["id"]
    numbers = told_at(port)
    code, _, err = served.end()
    assert code == 0
    lines = [json.loads(line) for line in err.splitlines()]
    ids = {line["message"]: (line.get("run"), line.get("request"), line.get("key")) for line in lines}
    fingerprint = shown(f"approval:{key}")
    assert ids["run started (api)"] == (started, "starting-1", None)
    assert ids["request rejected (api)"] == (started, "deciding-1", fingerprint)
    assert ids["run ended: rejected"] == (decided, "deciding-1", fingerprint)
    assert key not in err
    assert 'kampong_runs_started_total{agent="clerk",surface="api"} 1.0' in numbers
    assert 'kampong_runs_ended_total{agent="clerk",status="rejected"} 1.0' in numbers
    assert "kampong_approvals_waiting" not in numbers, "nothing of the database without a token"
    with pytest.raises(urllib.error.URLError):
        told_at(port)


@pytest.mark.parametrize("command", ["serve", "worker", "scheduler"])
def test_a_port_for_metrics_in_use_is_one_clear_line(
    command: str, ended: Callable[..., Ended], settings: Settings
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.KAMPONG_METRICS_PORT = taken.getsockname()[1]
        end = ended(command)
    assert end.code == 2
    assert len(end.err.strip().splitlines()) == 1
    assert "it is in use. Give each process of this machine a KAMPONG_METRICS_PORT of its own" in end.err


def test_the_port_is_open_as_long_as_its_process_works_and_asks_the_database_nothing(
    settings: Settings, django_assert_num_queries: Any
) -> None:
    settings.KAMPONG_METRICS_PORT = free_port()
    with metrics_port():
        told = told_at(settings.KAMPONG_METRICS_PORT)
    with django_assert_num_queries(0):
        counted = generate_latest(registry_of(Counted())).decode()
    assert counted == told
    with pytest.raises(urllib.error.URLError):
        told_at(settings.KAMPONG_METRICS_PORT)
    settings.KAMPONG_METRICS_PORT = 0
    with metrics_port():
        pass
