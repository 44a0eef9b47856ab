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
from django.core import mail
from django.core.exceptions import ImproperlyConfigured

from approvals.notices.mail_unset import MailUnset
from kampong import environment
from statestore.conf import Setting, declare, from_environment, table
from tests.conftest import ROOT

#: Processes that open no database: what they say is the same on both.
shared = pytest.mark.everyday("sqlite")


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("KAMPONG_")} | variables
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@shared
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
        ("KAMPONG_KEEP_FAILED", "90 days", "'90 days' is neither 'forever' nor an age above 0 such as 90d"),
        ("KAMPONG_PRODUCTION", "perhaps", "'perhaps' is not a yes or no"),
        ("DATABASE_URL", "mysql://somebody:hidden@db/kampong", "sqlite:///PATH or postgres://"),
        ("DATABASE_URL", "nonsense", "sqlite:///PATH or postgres://"),
        ("KAMPONG_BASE_URL", "kampong.example.org", "it is no web address"),
        ("KAMPONG_BASE_URL", "ftp://kampong.example.org", "it is no web address"),
        ("KAMPONG_BASE_URL", "https://somebody:hidden@kampong.example.org", "it holds a user name"),
        ("KAMPONG_BASE_URL", "https://kampong.example.org/?a=1", "nothing comes after its path"),
        ("KAMPONG_BASE_URL", "https://kampong.example.org/#a", "nothing comes after its path"),
        ("KAMPONG_BASE_URL", "https://kampong.example.org/a//b", "between single slashes"),
        ("KAMPONG_BASE_URL", "https://kampong.example.org/a/../b", "between single slashes"),
        ("KAMPONG_BASE_URL", "https://kampong.example.org:port", "it is no web address"),
        ("EMAIL_URL", "pigeon://somebody:hidden@mail.example.org", "no way to send mail"),
        ("EMAIL_URL", "smtps://somebody:hidden@mail.example.org", "smtp+tls"),
        ("EMAIL_URL", "smtp+tls://somebody:hid/den@mail.example.org", "percent-encoded"),
        ("EMAIL_URL", "smtp+tls://", "smtp+tls://USER:PASSWORD@HOST:587"),
        ("KAMPONG_WEBHOOK_SECRETS", "clerk", "part 1 is not AGENT=NAME"),
        ("KAMPONG_WEBHOOK_SECRETS", "clerk=A, other=whsec_hidden+/", "part 2 is not AGENT=NAME"),
        ("KAMPONG_WEBHOOK_SECRETS", "=A", "part 1 is not AGENT=NAME"),
        ("KAMPONG_WEBHOOK_SECRETS", "clerk=A,clerk=B", "names an agent for the second time"),
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


@shared
def test_with_json_such_a_setting_is_one_object_too() -> None:
    finished = manage("check_spec", "--json", "spec.yaml", KAMPONG_TOOL_TIMEOUT="soon")
    answer = json.loads(finished.stdout)
    assert (finished.returncode, answer["success"], answer["code"]) == (2, False, "settings")
    assert answer["error"] == finished.stderr.strip()
    assert "KAMPONG_TOOL_TIMEOUT" in answer["error"]


@shared
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


def test_mail_leaves_as_the_url_says(tmp_path: Path) -> None:
    found = environment.email({"EMAIL_URL": "smtp+tls://desk%40example.org:p%2Fw@mail.example.org"}, tmp_path)
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"], found["EMAIL_USE_TLS"]) == ("mail.example.org", 587, True)
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("desk@example.org", "p/w")
    assert found["EMAIL_TIMEOUT"] > 0, "a server that says nothing holds nobody up for ever"
    found = environment.email({"EMAIL_URL": "smtp+ssl://mail.example.org:4650"}, tmp_path)
    assert (found["EMAIL_PORT"], found["EMAIL_USE_SSL"], found["EMAIL_HOST_USER"]) == (4650, True, "")
    found = environment.email({"EMAIL_URL": "filemail:///mails"}, tmp_path)
    assert found["EMAIL_FILE_PATH"] == str(tmp_path / "mails")


def test_without_a_mail_server_a_mail_says_which_setting_is_missing(tmp_path: Path) -> None:
    backend = environment.email({}, tmp_path)["EMAIL_BACKEND"]
    with pytest.raises(MailUnset, match="set EMAIL_URL"):
        mail.send_mail("a", "b", "c@example.org", ["d@example.org"], connection=mail.get_connection(backend))


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
