"""Which specs are served: files, folders, broken ones, changes on disk (design 5.4)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workbench import ASKING, begin, work, write_spec
from workflows import specfiles
from workflows.errors import AgentNotFound, SpecBroken
from workflows.models import SpecVersion, Status
from workflows.registry import Registry, SpecUnreadable, pinned, present_hash, read_spec, registry
from workflows.spec.load import load


@pytest.fixture
def served(tmp_path: Path) -> Registry:
    """A registry that serves the folder of the test."""
    found = Registry()
    found.serve([tmp_path])
    return found


def text(agent_id: str = "clerk", name: str = "Paying clerk") -> str:
    return ASKING.format(agent_id=agent_id).replace("Paying clerk", name)


def age(path: Path, seconds: float = 10) -> None:
    """Let a file look as if it had rested."""
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))


def test_it_serves_the_yaml_files_of_a_folder_sorted(tmp_path: Path, served: Registry) -> None:
    for name in ("b.yml", "a.yaml", "C.YAML", "notes.txt"):
        (tmp_path / name).write_text(text(f"agent-{name[0].lower()}"))
    (tmp_path / "folder.yaml").mkdir()
    assert [file.path.name for file in served.files()] == ["C.YAML", "a.yaml", "b.yml"]
    assert served.broken() == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_file_is_kept_as_text_in_whatever_encoding_it_is_saved(
    encoding: str, tmp_path: Path, served: Registry
) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "clerk.yaml").write_bytes((mark + text(name="Größe 😀")).encode(encoding))
    (file,) = served.files()
    assert file.text == text(name="Größe 😀")
    assert load(file.text).hash == file.hash


def test_it_serves_what_the_setting_names(tmp_path: Path, settings: Settings) -> None:
    file = write_spec(tmp_path, ASKING, agent_id="from-settings")
    settings.KAMPONG_SPECS = [str(file.path)]
    assert registry().find("from-settings") == file
    settings.KAMPONG_SPECS = []
    with pytest.raises(SpecBroken):
        registry().find("from-settings")


def test_a_file_reached_twice_is_one_file(tmp_path: Path, served: Registry) -> None:
    file = write_spec(tmp_path, ASKING)
    (tmp_path / "link.yaml").symlink_to(file.path)
    served.serve([file.path, tmp_path])
    assert len(served.files()) == 1
    assert served.broken() == []


def test_an_unknown_agent_is_told_apart_from_a_broken_one(tmp_path: Path, served: Registry) -> None:
    write_spec(tmp_path, ASKING)
    with pytest.raises(AgentNotFound, match="served: clerk"):
        served.find("nobody")


def test_the_second_file_with_an_id_is_broken_and_names_the_first(tmp_path: Path, served: Registry) -> None:
    write_spec(tmp_path, ASKING, name="a.yaml")
    write_spec(tmp_path, ASKING, name="b.yaml")
    assert served.find("clerk").path.name == "a.yaml"
    (refused,) = served.broken()
    assert refused.path.name == "b.yaml"
    assert str(tmp_path / "a.yaml") in refused.message


@pytest.mark.parametrize("agent_id", ["has blank", "-first", "a" * 101, "slash/ed", "é"])
def test_an_id_that_no_route_can_carry_is_not_served(tmp_path: Path, served: Registry, agent_id: str) -> None:
    (tmp_path / "spec.yaml").write_text(text(f'"{agent_id}"'))
    assert served.files() == []
    (refused,) = served.broken()
    assert "cannot be served" in refused.message


def test_a_broken_file_refuses_runs_with_located_errors_and_stops_no_other(tmp_path: Path, served: Registry) -> None:
    write_spec(tmp_path, ASKING, agent_id="good", name="good.yaml")
    path = write_spec(tmp_path, ASKING, agent_id="bad", name="bad.yaml").path
    assert served.find("bad").agent_id == "bad"
    path.write_text(text("bad").replace("type: approval", "type: dance", 1))
    with pytest.raises(SpecBroken) as refusal:
        served.find("bad")
    assert str(path) in refusal.value.message
    assert refusal.value.extra["errors"][0]["path"].startswith("agent.workflow.0")
    assert served.find("good").agent_id == "good"


def test_a_file_that_was_broken_from_the_start_is_known_by_the_id_it_names(tmp_path: Path, served: Registry) -> None:
    (tmp_path / "bad.yaml").write_text(text("bad").replace("type: approval", "type: dance", 1))
    with pytest.raises(SpecBroken):
        served.find("bad")


def test_a_broken_first_file_does_not_hand_its_id_to_the_second(tmp_path: Path, served: Registry) -> None:
    first = write_spec(tmp_path, ASKING, name="a.yaml")
    write_spec(tmp_path, ASKING, name="b.yaml")
    assert served.find("clerk").path == first.path
    first.path.write_text("version: [")
    with pytest.raises(SpecBroken, match=r"a\.yaml"):
        served.find("clerk")


def test_a_removed_file_refuses_runs_until_it_is_back(tmp_path: Path, served: Registry) -> None:
    file = write_spec(tmp_path, ASKING)
    assert served.find("clerk") == file
    file.path.rename(tmp_path / "away.txt")
    with pytest.raises(SpecBroken, match="Put the file back"):
        served.find("clerk")
    (tmp_path / "away.txt").rename(tmp_path / "other-name.yaml")
    assert served.find("clerk").path.name == "other-name.yaml"


def test_a_change_is_noticed_at_the_next_look_even_with_size_and_time_kept(tmp_path: Path, served: Registry) -> None:
    file = write_spec(tmp_path, ASKING)
    assert served.find("clerk").spec.agent.name == "Paying clerk"
    before = file.path.stat()
    file.path.write_text(text(name="Waying clerk"))
    os.utime(file.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.path.stat().st_size == before.st_size
    assert served.find("clerk").spec.agent.name == "Waying clerk"


def test_an_unchanged_file_is_read_once(
    tmp_path: Path, served: Registry, monkeypatch: pytest.MonkeyPatch, settle: Callable[[], None]
) -> None:
    write_spec(tmp_path, ASKING)
    settle()
    first = served.find("clerk")
    assert served.find("clerk") is first
    assert served.files()[0] is first


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Count every file as rested, so that a fresh one need not be waited for."""
    return lambda: monkeypatch.setattr(specfiles, "_RESTED_NS", -1)


def test_a_file_over_the_limit_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text(text() + "#" * specfiles.SPEC_LIMIT)
    with pytest.raises(SpecUnreadable, match="larger than 4 MiB"):
        read_spec(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"\xff\xfe\xff", ""), (b"- 1\n- 2\n", ""), (b"version: [", ""), (b"", "")],
)
def test_what_is_no_spec_is_refused_with_its_errors(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecUnreadable) as refusal:
        read_spec(path)
    assert refusal.value.errors
    assert says in refusal.value.message


def test_whether_a_file_was_read_is_told_by_no_words_of_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    with pytest.raises(SpecUnreadable) as missing:
        read_spec(path)
    path.write_bytes(b"version: [")
    with pytest.raises(SpecUnreadable) as invalid:
        read_spec(path)
    with pytest.raises(SpecUnreadable) as folder:
        read_spec(tmp_path)
    assert (missing.value.unread, invalid.value.unread, folder.value.unread) == (True, False, True)
    told = specfiles.broken(path, missing.value.errors[0].message)
    assert not SpecUnreadable(told).unread


def test_a_missing_file_and_a_missing_folder_say_so(tmp_path: Path, served: Registry) -> None:
    with pytest.raises(SpecUnreadable, match="No such file"):
        read_spec(tmp_path / "none.yaml")
    served.serve([tmp_path / "nowhere"])
    (refused,) = served.broken()
    assert "No such file" in refused.message


def test_the_present_hash_is_that_of_the_runs_own_file_then_of_the_served_one(
    tmp_path: Path, settings: Settings
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    mine = write_spec(own, ASKING)
    other = write_spec(tmp_path, ASKING.replace("Paying clerk", "Other clerk"))
    settings.KAMPONG_SPECS = [str(other.path)]
    assert mine.hash != other.hash
    assert present_hash("clerk", str(mine.path)) == mine.hash
    mine.path.write_text("version: [")
    assert present_hash("clerk", str(mine.path)) is None
    mine.path.unlink()
    assert present_hash("clerk", str(mine.path)) == other.hash
    assert present_hash("clerk", "") == other.hash
    assert present_hash("nobody", "") is None


@pytest.mark.django_db
def test_a_run_keeps_the_text_it_started_with(tmp_path: Path) -> None:
    file = write_spec(tmp_path, ASKING)
    run = begin(file)
    file.path.write_text("version: [")
    pinned.cache_clear()
    assert pinned(run.workspace, run.spec_hash) == file.spec


@pytest.mark.django_db(transaction=True)
def test_a_stored_text_that_was_changed_is_not_run(tmp_path: Path) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    version = SpecVersion.objects.get(hash=run.spec_hash)
    SpecVersion.objects.filter(pk=version.pk).update(text=version.text.replace("Go on with", "Stop"))
    pinned.cache_clear()
    work()
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert "was changed in the database" in run.error


def test_many_threads_look_while_a_file_changes(tmp_path: Path, served: Registry) -> None:
    path = write_spec(tmp_path, ASKING).path
    names = {"Paying clerk", "Other clerk"}
    seen: set[str] = set()
    errors: list[Exception] = []

    def look() -> None:
        try:
            for _ in range(50):
                seen.add(served.find("clerk").spec.agent.name)
        except Exception as error:  # noqa: BLE001  (shown by the test's assertion)
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for n in range(20):
        beside = tmp_path / "beside.txt"
        beside.write_text(text(name=sorted(names)[n % 2]))
        beside.replace(path)
    for thread in threads:
        thread.join()
    assert errors == []
    assert seen <= names
    assert served.find("clerk").spec.agent.name == "Paying clerk"
