"""The options of record and replay: where files lie, what is refused before a run, what a replay does without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes_tools import FakeTools
from tests.surfaces.cli.offline import kept
from tests.surfaces.cli.running import HEAD, command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

TOOL = """\
  tools:
    - name: "../../look"
      action: http_request
      method: GET
      url: "URL/x"
      retry: { max: 2, base_ms: 20000, backoff: fixed }
      pace: { rps: 0.01 }
  workflow:
    - { step: first, type: tool, tool: "../../look" }
    - { step: second, type: tool, tool: "../../look" }
"""


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools({"GET /x": {"json": {"n": 5}}}, keep_alive=False) as tools:
        yield tools


@pytest.fixture
def spec(tools: FakeTools, tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    return Path(spec_at(folder, HEAD + TOOL.replace("URL", tools.url).replace("      pace: { rps: 0.01 }\n", "")))


def test_fixtures_lie_beside_the_spec_unless_it_is_said(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run_spec", str(spec), "--input", "x", "--json", "--tools"]
    assert command(*words, "record").code == 0
    assert command(*words, "record", "--fixtures", "there/deep").code == 0
    (beside,) = kept(tmp_path / "here" / ".kampong" / "fixtures")
    (elsewhere,) = kept(tmp_path / "there" / "deep")
    assert beside == elsewhere
    assert beside.startswith("______look.")
    assert len(kept(tmp_path)) == 3
    assert command(*words, "replay", "--fixtures", "there/deep/").code == 0
    missed = command(*words, "replay", "--fixtures", "nowhere")
    assert (missed.code, missed.object()["trace"][0]["status"]) == (2, "failed")
    assert "there is no fixture" in missed.object()["error"]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("mode", ["record", "replay"])
@pytest.mark.parametrize("option", ["--tools", "--models"])
@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_is_none_is_refused_before_the_run_starts(
    place: str, option: str, mode: str, spec: Path, tools: FakeTools, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    words = ["run_spec", str(spec), "--input", "x", option, mode, "--fixtures", str(tmp_path / place)]
    told = command(*words)
    assert (told.code, told.out) == (2, "")
    assert f"{tmp_path / 'file'} is not a folder" in told.err
    assert "--fixtures" in told.err
    refused = command(*words, "--json")
    assert refused.code == 2
    assert set(refused.object()) == {"success", "phase", "error"}
    assert (refused.object()["success"], refused.object()["phase"]) == (False, "execution")
    assert tools.requests == []


def test_live_runs_do_not_look_at_the_folder(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert command("run_spec", str(spec), "--input", "x", "--fixtures", str(tmp_path / "file")).code == 0


def test_a_replay_waits_neither_to_try_again_nor_for_a_slot(tools: FakeTools, tmp_path: Path) -> None:
    """Live, the second call would come 100 seconds after the first, and each of two more tries 20 seconds later."""
    tools.script["GET /x"] = {"status": 503}
    text = HEAD + TOOL.replace("URL", tools.url)
    once = text.replace("      retry: { max: 2, base_ms: 20000, backoff: fixed }\n", "")
    words = ["--input", "x", "--json", "--tools"]
    recorded = command("run_spec", spec_at(tmp_path, once), *words, "record")
    assert "503" in recorded.object()["error"]
    before = time.monotonic()
    replayed = command("run_spec", spec_at(tmp_path, text), *words, "replay")
    assert time.monotonic() - before < 20
    assert "503" in replayed.object()["error"]
    assert "3 attempts" in replayed.object()["error"]
    assert len(tools.requests) == 1
    path = next((tmp_path / ".kampong" / "fixtures").iterdir())
    path.write_text('{"status": 200, "body": 1}')
    before = time.monotonic()
    assert command("run_spec", spec_at(tmp_path, text), *words, "replay").code == 0
    assert time.monotonic() - before < 50
