"""What the log says about spec files: each change once, with the path, where and why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.workbench import ASKING
from workflows import housekeeping
from workflows.registry import Registry
from workflows.specwatch import SpecWatch

LOG = "kampong.specs"


@pytest.fixture
def watch(tmp_path: Path) -> SpecWatch:
    """Watches the folder of the test."""
    found = Registry()
    found.serve([tmp_path])
    return SpecWatch(lambda: found)


def text(agent_id: str = "clerk", name: str = "Paying clerk") -> str:
    return ASKING.format(agent_id=agent_id).replace("Paying clerk", name)


def said(watch: SpecWatch, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of one look; a second look says nothing more."""
    caplog.clear()
    caplog.set_level(logging.INFO, LOG)
    assert watch.look() == 0
    lines = [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == LOG]
    caplog.clear()
    watch.look()
    assert not caplog.records
    return lines


def test_a_file_breaks_is_mended_changes_and_goes_each_said_once(
    tmp_path: Path, watch: SpecWatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "clerk.yaml"
    path.write_text(text())
    assert said(watch, caplog) == []
    path.write_text(text().replace("type: approval", "type: dance", 1))
    (line,) = said(watch, caplog)
    assert line.startswith(f"WARNING {path} is broken: 9:27: agent.workflow.0.type: ")
    assert '"dance"' in line
    assert line.endswith(": agent clerk starts no new run, running ones go on")
    path.write_text("version: [")
    assert len(said(watch, caplog)) == 1
    path.write_text(text())
    (line,) = said(watch, caplog)
    before = line[-13:-1]
    assert line == f"WARNING {path} is mended: agent clerk is served ({before})"
    path.write_text(text(name="Other clerk"))
    (line,) = said(watch, caplog)
    assert line.startswith(f"INFO {path} changed: agent clerk {before} -> ")
    path.write_text("# a remark\n" + text(name="Other clerk"))
    assert said(watch, caplog) == []
    path.unlink()
    assert said(watch, caplog) == [f"WARNING {path} is gone: agent clerk starts no new run, running ones go on"]


def test_new_renamed_and_doubled_files(tmp_path: Path, watch: SpecWatch, caplog: pytest.LogCaptureFixture) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    assert said(watch, caplog) == []
    first.write_text(text())
    (line,) = said(watch, caplog)
    assert line.startswith(f"INFO {first} is new: agent clerk is served (")
    second.write_text(text())
    (line,) = said(watch, caplog)
    assert f"{second} is broken: agent id 'clerk' is already served from {first}" in line
    first.unlink()
    told = said(watch, caplog)
    assert [line.split(":")[0] for line in told] == [f"WARNING {second} is mended", f"INFO {first} is gone"]
    assert told[1].endswith(f"agent clerk is served from {second}")
    second.write_text(text("other"))
    (line,) = said(watch, caplog)
    assert f"{second} changed: agent other instead of agent clerk" in line


def test_the_first_look_says_what_is_broken_and_nothing_else(
    tmp_path: Path, watch: SpecWatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "good.yaml").write_text(text())
    (tmp_path / "bad.yaml").write_text("version: [")
    (line,) = said(watch, caplog)
    assert line.startswith(f"WARNING {tmp_path / 'bad.yaml'} is broken: ")
    assert "an agent that it does not name starts no new run" in line


def test_it_is_a_chore_of_every_process_that_keeps_house() -> None:
    assert "spec files" in [chore.name for chore in housekeeping.chores()]
