"""The folder of recorded calls: names that stay in it, files that are whole, and what is no fixture."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from workflows.adapters import fixtures
from workflows.adapters.fixtures import Fixtures, Unusable, any_for_tool, file_name, why_not

KEY = "0123456789abcdef" * 4
NAME = "get.0123456789abcdef.json"


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("get", NAME),
        ("get it", "get_it.0123456789abcdef.json"),
        ("a.b/c\\d", "a_b_c_d.0123456789abcdef.json"),
        ("../../etc/passwd", "______etc_passwd.0123456789abcdef.json"),
        ("é\x00\n名", "____.0123456789abcdef.json"),
        ("", "tool.0123456789abcdef.json"),
        ("n" * 900, "n" * 200 + ".0123456789abcdef.json"),
    ],
)
def test_a_name_is_made_safe(tool: str, name: str, tmp_path: Path) -> None:
    assert file_name(tool, KEY) == name
    Fixtures(tmp_path / "in").write(name, {"a": 1})
    assert any_for_tool(tmp_path / "in", tool)
    assert os.listdir(tmp_path) == ["in"]


def test_a_tool_has_a_fixture_when_a_file_bears_its_whole_name(tmp_path: Path) -> None:
    for name in ("get_it.0123456789abcdef.json", "get.json", "get.0123.json", ".get.0123456789abcdef.json", "put"):
        (tmp_path / name).touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / NAME).touch()
    assert any_for_tool(tmp_path, "get it")
    assert not any_for_tool(tmp_path, "get")
    assert not any_for_tool(tmp_path, "put")
    assert not any_for_tool(tmp_path / "nowhere", "get")
    assert not any_for_tool(tmp_path / "put", "get")


def test_what_is_written_is_read_again_and_the_later_writing_is_kept(tmp_path: Path) -> None:
    folder = Fixtures(tmp_path / "deep" / "down")
    assert folder.read(NAME) is None
    folder.write(NAME, {"status": 200, "body": {"z": [1, 2.5, None, "é\u2028"], "a": 10**40}})
    folder.write("models/" + NAME, {"outcome": "text"})
    folder.write(NAME, {"status": 201, "body": {"z": [1, 2.5, None, "é\u2028"], "a": 10**40}})
    assert folder.read(NAME) == {"status": 201, "body": {"z": [1, 2.5, None, "é\u2028"], "a": 10**40}}
    assert sorted(path.name for path in (tmp_path / "deep" / "down").iterdir()) == [NAME, "models"]
    assert not stat.S_IMODE((tmp_path / "deep" / "down" / NAME).stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH)


def test_a_file_is_readable_by_its_owner_alone_where_the_umask_says_so(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Fixtures(tmp_path).write(NAME, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b'{"status": 200, "bo', "not JSON"),
        (b"[1]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"null", "no JSON object"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_fixture_is_named_and_costs_no_traceback(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(Unusable, match=why) as refusal:
        Fixtures(tmp_path).read(NAME)
    assert str(tmp_path / NAME) in str(refusal.value)


def test_a_folder_or_a_pipe_in_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("folder", "pipe", "loop"):
        with pytest.raises(Unusable, match=name):
            Fixtures(tmp_path).read(name)


def test_a_file_beyond_all_measure_is_neither_read_nor_written(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(fixtures.SIZE_LIMIT + 1)
    with pytest.raises(Unusable, match="longer than 64 MiB"):
        Fixtures(tmp_path).read(NAME)
    with pytest.raises(Unusable, match="longer than 64 MiB"):
        Fixtures(tmp_path / "new").write(NAME, {"a": "x" * fixtures.SIZE_LIMIT})
    assert not (tmp_path / "new").exists()


def test_a_failed_writing_leaves_nothing_behind_and_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(Unusable, match="cannot be written"):
        Fixtures(tmp_path).write(NAME, {"a": 1})
    assert os.listdir(tmp_path) == [NAME]
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="cannot be written"):
        Fixtures(tmp_path / "file" / "below").write(NAME, {"a": 1})


def test_a_folder_is_judged_before_a_run_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    assert why_not(tmp_path, writing=True) is None
    assert why_not(tmp_path / "not" / "yet", writing=True) is None
    assert why_not(tmp_path / "not" / "yet", writing=False) is None
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "dangling" / "x"):
        for writing in (True, False):
            assert "is not a folder" in (why_not(place, writing=writing) or "")


@pytest.fixture
def anybody() -> Iterator[None]:
    """Not root, whom no folder refuses."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    yield
    os.setresuid(0, 0, 0)


@pytest.mark.usefixtures("anybody")
def test_a_folder_that_takes_nothing_is_refused_for_recording_alone() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o555)
        assert "is not writable" in (why_not(place, writing=True) or "")
        assert "is not writable" in (why_not(place / "new", writing=True) or "")
        assert why_not(place, writing=False) is None
        with pytest.raises(Unusable, match="cannot be written: Permission denied"):
            Fixtures(place).write(NAME, {})
        place.chmod(0o300)
        assert "cannot be read" in (why_not(place, writing=False) or "")
        (place / NAME).touch(mode=0o200)
        with pytest.raises(Unusable, match="cannot be read: Permission denied"):
            Fixtures(place).read(NAME)
        place.chmod(0o700)


WRITER = """\
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from workflows.adapters.fixtures import Fixtures
folder, mark = Fixtures(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(300):
    folder.write("get.0123456789abcdef.json", {"mark": mark, "number": number, "body": mark * 20_000})
"""


def test_a_folder_is_made_before_the_first_call_or_said_to_be_impossible(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    assert Fixtures(folder).prepare() is None
    assert list(folder.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert "cannot be recorded" in (Fixtures(tmp_path / "file" / "below").prepare() or "")


def test_two_processes_may_record_the_same_call_at_once(tmp_path: Path) -> None:
    """Every reading in between finds a whole file of one of them, and in the end only it is there."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "new"), mark],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for mark in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.close()
    seen = set()
    while any(writer.poll() is None for writer in writers):
        content = Fixtures(tmp_path / "new").read(NAME)
        if content is not None:
            assert content["body"] == content["mark"] * 20_000
            seen.add(content["mark"])
    for writer in writers:
        assert writer.wait(30) == 0
        assert writer.stdout is not None
        writer.stdout.close()
    assert seen
    last = Fixtures(tmp_path / "new").read(NAME)
    assert last is not None
    assert last["number"] == 299
    assert os.listdir(tmp_path / "new") == [NAME]
