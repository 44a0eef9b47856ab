"""Named points do what a test asks, and nothing outside tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from pytest_django import Settings

from statestore.faults import point
from tests.conftest import ROOT


def child(plan: str) -> subprocess.Popen[bytes]:
    """A process that passes the point `claim` and then ends well."""
    code = (
        "from django.conf import settings; settings.configure(KAMPONG_TESTING=True);"
        "from statestore.faults import point; point('claim')"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"KAMPONG_FAULTS": plan})


def test_kill_ends_the_process_at_its_point_only() -> None:
    assert child("other=kill,claim=kill").wait(30) == -signal.SIGKILL
    assert child("other=kill").wait(30) == 0


def test_stop_holds_the_process_until_it_is_woken() -> None:
    process = child("claim=stop")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    assert process.wait(30) == 0


def test_sleep_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAMPONG_FAULTS", "claim=sleep:0.2")
    begun = time.monotonic()
    point("claim")
    assert time.monotonic() - begun >= 0.2


def test_an_act_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAMPONG_FAULTS", "claim=explode")
    with pytest.raises(ValueError, match="explode"):
        point("claim")


def test_nothing_happens_outside_tests(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setenv("KAMPONG_FAULTS", "claim=explode")
    settings.KAMPONG_TESTING = False
    point("claim")
