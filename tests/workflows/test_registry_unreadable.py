"""Paths that no file can be read from, and files that nobody can read: each is broken, and stops no other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workbench import ASKING
from workflows.registry import Registry


@pytest.fixture
def served(tmp_path: Path) -> Registry:
    """A registry that serves the folder of the test."""
    found = Registry()
    found.serve([tmp_path])
    return found


def text(agent_id: str = "clerk") -> str:
    return ASKING.format(agent_id=agent_id)


@pytest.fixture
def terminal() -> Iterator[str]:
    """One at which nobody types."""
    ends = os.openpty()
    yield os.ttyname(ends[1])
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_what_waits_for_somebody_in_place_of_a_file_holds_nobody_up(what: str, tmp_path: Path, terminal: str) -> None:
    path = tmp_path / "clerk.yaml"
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(terminal)
    found = Registry()
    found.serve([path])
    seen: list[object] = []
    looking = threading.Thread(
        target=lambda: seen.extend([found.present_hash("clerk", str(path)), found.broken()[0].message]), daemon=True
    )
    looking.start()
    looking.join(10)
    assert seen == [None, f"cannot be read: it is a {what}"]


@pytest.mark.parametrize("leads_to", ["clerk.yaml", "x" * 300, "nowhere"], ids=["itself", "too long", "nowhere"])
def test_a_link_that_leads_nowhere_stops_no_other_file(leads_to: str, tmp_path: Path, served: Registry) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    (folder / "clerk.yaml").symlink_to(leads_to)
    (tmp_path / "clerk.yaml").symlink_to(leads_to)
    (tmp_path / "other.yaml").write_text(text("other"))
    served.serve([folder / "clerk.yaml"])
    assert [file.agent_id for file in served.files()] == ["other"]
    (refused,) = served.broken()
    assert refused.message.startswith("cannot be read: ")
    assert served.present_hash("other", str(folder / "clerk.yaml")) == served.find("other").hash


def test_a_file_whose_name_is_no_text_is_broken_and_stops_no_other(tmp_path: Path, served: Registry) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml")).write_text(text())
    (tmp_path / "other.yaml").write_text(text("other"))
    assert [file.agent_id for file in served.files()] == ["other"]
    assert [file.message for file in served.broken()] == [
        "cannot be read: its name is not UTF-8, and no run could name it"
    ]


def test_a_schedule_with_a_number_that_nobody_can_read_stops_no_other(tmp_path: Path, served: Registry) -> None:
    schedule = f"  trigger: {{type: schedule, cron: '{'0' * 5000} * * * *'}}\n"
    (tmp_path / "clock.yaml").write_text(
        'version: "1.2"\nagent:\n  id: clock\n  name: A\n  role: B\n  goal: C\n'
        "  model: {provider: ollama, name: llama3}\n"
        f"{schedule}  workflow:\n    - {{step: look, type: approval, message: m}}\n"
    )
    (tmp_path / "other.yaml").write_text(text("other"))
    assert [file.agent_id for file in served.files()] == ["other"]
    assert [file.agent_id for file in served.broken()] == ["clock"]
