"""What an operator can get wrong about the broker is said before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.db import connection

from tests.conftest import ROOT
from tests.project.test_checks import ours

CELERY: dict[str, Any] = {"KAMPONG_QUEUE": "celery", "BROKER_URL": "amqp://guest:guest@broker:5672/"}
#: `manage.py` as it runs where Celery was not installed.
WITHOUT_CELERY = (
    "import runpy, sys; sys.modules['celery'] = sys.modules['channels_redis'] = None; "
    "runpy.run_path('manage.py', run_name='__main__')"
)

everyday = pytest.mark.everyday("sqlite")


def test_a_broker_that_nobody_named_is_found() -> None:
    found = ours(**CELERY | {"BROKER_URL": "", "KAMPONG_PRODUCTION": False})
    assert list(found) == ["kampong.E020"]
    assert "Set BROKER_URL" in (found["kampong.E020"].hint or "")


def test_a_file_is_no_database_for_many_machines() -> None:
    found = ours(**CELERY)
    assert list(found) == (["kampong.E021"] if connection.vendor == "sqlite" else [])
    assert ours(**CELERY | {"KAMPONG_PRODUCTION": False}) == {}, "to try it out, it is"


def manage(*words: str, code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("KAMPONG_")} | variables
    command = [sys.executable, *(["-c", code] if code else ["manage.py"]), *words]
    return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@everyday
def test_where_celery_is_not_installed_a_check_says_so_and_all_else_starts() -> None:
    urls = {"BROKER_URL": "amqp://guest:planted-canary@broker/", "CHANNEL_REDIS_URL": "redis://:planted-canary@redis/"}
    refused = manage("check", code=WITHOUT_CELERY, KAMPONG_QUEUE="celery", **urls)
    assert refused.returncode == 1
    assert "kampong.E020" in refused.stderr
    assert "kampong.E022" in refused.stderr
    assert "requirements-scale.txt" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "planted" not in refused.stderr


@everyday
def test_a_laptop_needs_no_celery() -> None:
    assert manage("check", code=WITHOUT_CELERY).returncode == 0


@everyday
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("KAMPONG_QUEUE", "rabbit", "'rabbit' is neither database nor celery"),
        ("BROKER_URL", "sqs://somebody:hidden@queue", "BROKER_URL must be amqp://"),
        ("BROKER_URL", "hidden", "BROKER_URL must be amqp://"),
        ("CHANNEL_REDIS_URL", "memcached://somebody:hidden@cache", "CHANNEL_REDIS_URL must be redis://"),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, text: str, said: str) -> None:
    finished = manage("check", **{name: text})
    assert finished.returncode != 0
    assert said in finished.stderr
    assert "somebody" not in finished.stderr
