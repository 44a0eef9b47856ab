"""What the environment may say: known names, values that work, and a sentence without a traceback for the rest."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from kampong import environment
from statestore.conf import Setting, declare, from_environment, table
from tests.conftest import ROOT


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("KAMPONG_")} | variables
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("KAMPONG_APROVAL_TTL", "60", "Did you mean KAMPONG_APPROVAL_TTL?"),
        ("KAMPONG_XYZZY", "60", "Known: KAMPONG_"),
        ("KAMPONG_WORKERS", "0", "'0' is not a whole number of at least 1"),
        ("KAMPONG_WORKERS", "many", "'many' is not a whole number of at least 1"),
        ("KAMPONG_LEASE_SECONDS", "soon", "'soon' is not a number of seconds"),
        ("KAMPONG_LEASE_SECONDS", "nan", "'nan' is not a number of seconds"),
        ("KAMPONG_APPROVAL_TTL", "0", "'0' is not a lifetime"),
        ("KAMPONG_APPROVAL_TTL", "4e9", "at most 100 years"),
        ("KAMPONG_PRODUCTION", "perhaps", "'perhaps' is not a yes or no"),
        ("DATABASE_URL", "mysql://somebody:hidden@db/kampong", "sqlite:///PATH or postgres://"),
        ("DATABASE_URL", "nonsense", "sqlite:///PATH or postgres://"),
        ("TIME_ZONE", "Mars/Olympus", "TIME_ZONE"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL"),
    ],
)
@pytest.mark.parametrize("command", ["check", "no_such_command"])
def test_a_setting_that_cannot_work_ends_in_one_sentence(name: str, text: str, said: str, command: str) -> None:
    finished = manage(command, **{name: text})
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert name in finished.stderr
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "hidden" not in finished.stderr


def test_with_json_such_a_setting_is_one_object_too() -> None:
    finished = manage("check_spec", "--json", "spec.yaml", KAMPONG_TOOL_TIMEOUT="soon")
    answer = json.loads(finished.stdout)
    assert (finished.returncode, answer["success"], answer["code"]) == (2, False, "settings")
    assert answer["error"] == finished.stderr.strip()
    assert "KAMPONG_TOOL_TIMEOUT" in answer["error"]


def test_testing_and_production_exclude_each_other() -> None:
    finished = manage("check", KAMPONG_TESTING="1", KAMPONG_PRODUCTION="1", SECRET_KEY="x" * 50)
    assert finished.returncode == 2
    assert "KAMPONG_TESTING and KAMPONG_PRODUCTION exclude each other" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_every_declared_setting_is_read_and_explained() -> None:
    for row in table():
        assert len(row.help) > 20, f"{row.name} needs a help text"
    assert from_environment({"KAMPONG_WORKERS": " 3 ", "PATH": "/bin"}) == {"KAMPONG_WORKERS": 3}


def test_a_setting_without_the_prefix_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="must start with KAMPONG_"):
        declare(Setting(name="WORKERS", default=1, help="no prefix"))


def test_a_relative_database_is_the_same_file_from_every_folder(tmp_path: Path) -> None:
    found = environment.database({"DATABASE_URL": "sqlite:///here/state.db"}, tmp_path, tmp_path / ".kampong")
    assert found["NAME"] == str(tmp_path / "here" / "state.db")
    assert found["ENGINE"] == "statestore.sqlite"


def test_without_a_url_the_state_lies_in_the_project(tmp_path: Path) -> None:
    found = environment.database({}, tmp_path, tmp_path / ".kampong")
    assert found["NAME"] == str(tmp_path / ".kampong" / "state.db")


def test_postgres_keeps_its_options_and_a_checked_connection(tmp_path: Path) -> None:
    url = "postgres://someone:p%40ss@db.example.org:5433/kampong?sslmode=require"
    found = environment.database({"DATABASE_URL": url}, tmp_path, tmp_path)
    assert (found["USER"], found["PASSWORD"]) == ("someone", "p@ss")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example.org", 5433, "kampong")
    assert found["OPTIONS"]["sslmode"] == "require"
    assert found["OPTIONS"]["pool"]["min_size"] == 0, "a command opens no connection that it does not use"
    assert found["ENGINE"] == "statestore.postgres", "which tries a connection before it hands it out"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ImproperlyConfigured, match=r"file/below cannot be made for the database: .*DATABASE_URL"):
        environment.database({"DATABASE_URL": "sqlite:///file/below/state.db"}, tmp_path, tmp_path)
    with pytest.raises(ImproperlyConfigured, match=r"secret key: .*Set SECRET_KEY"):
        environment.secret_key({}, tmp_path / "file" / "below")


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: environment.secret_key({}, tmp_path / "state"), range(32)))
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    files = list((tmp_path / "state").iterdir())
    assert [file.name for file in files] == ["secret_key"]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600


def test_a_given_secret_key_writes_nothing(tmp_path: Path) -> None:
    assert environment.secret_key({"SECRET_KEY": "given"}, tmp_path / "state") == "given"
    assert not (tmp_path / "state").exists()


def test_an_empty_key_file_is_not_a_key(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="is empty"):
        environment.secret_key({}, tmp_path)


def test_a_new_state_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    environment.database({}, tmp_path, tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
