"""What keeps `serve`, `worker` and `recover` from doing anything: one clear line and the exit code (design 5.1)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.surfaces.serve.conftest import Ended
from tests.workbench import ASKING, begin, write_spec
from workflows.models import Run
from workflows.registry import registry

pytestmark = pytest.mark.django_db(transaction=True)
#: Refused before a database is asked anything.
shared = pytest.mark.everyday("postgres")


@shared
def test_a_port_in_use_is_one_clear_line(ended: Callable[..., Ended]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        end = ended("serve", "--port", taken.getsockname()[1])
    assert end.code == 2
    assert "it is in use" in end.err
    assert len(end.err.strip().splitlines()) == 1


@shared
@pytest.mark.parametrize("content", [None, "version: [", ASKING.format(agent_id="'has blank'")])
def test_a_named_spec_that_cannot_be_served_ends_it_before_it_begins(
    tmp_path: Path, ended: Callable[..., Ended], content: str | None
) -> None:
    path = tmp_path / "spec.yaml"
    if content is not None:
        path.write_text(content)
    end = ended("serve", path)
    assert end.code == 1
    assert str(path) in end.err
    assert end.out == ""
    assert path not in [file.path for file in registry().broken()]


@shared
def test_a_missing_folder_is_as_bad_as_a_missing_file(tmp_path: Path, ended: Callable[..., Ended]) -> None:
    end = ended("serve", tmp_path / "nowhere")
    assert end.code == 1
    assert "nowhere" in end.err


@shared
@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "x"),
        ("serve", "--port", "70000"),
        ("serve", "--workers", "0"),
        ("serve", "--what"),
        ("serve", "--host"),
        ("worker", "--workers", "0"),
        ("worker", "extra"),
        ("recover", "extra"),
    ],
)
def test_wrong_use_is_64_with_the_reason_on_stderr(ended: Callable[..., Ended], words: tuple[str, ...]) -> None:
    end = ended(*words)
    assert end.code == 64
    assert end.err
    assert end.out == ""


@shared
def test_help_is_no_wrong_use(ended: Callable[..., Ended]) -> None:
    end = ended("serve", "--help")
    assert (end.code, end.err) == (0, "")
    assert "--web-only" in end.out


def test_recover_says_what_it_did(tmp_path: Path, ended: Callable[..., Ended]) -> None:
    run = begin(write_spec(tmp_path, ASKING))
    assert ended("recover").out == "Nothing to recover.\n"
    Run.objects.update(queued_at="2020-01-01T00:00:00Z")
    end = ended("recover")
    assert end.code == 0
    assert end.out == f"{run.uuid} clerk: sent again to the queue\n"


def test_without_migrations_it_says_which_command_is_missing(manage: Processes, fresh_database: str) -> None:
    for command in (("serve", "--no-migrate", "--port", "0"), ("recover",)):
        end = manage.run(*command, env={"DATABASE_URL": fresh_database})
        assert end.returncode == 2
        assert "python manage.py migrate" in end.stderr
        assert len(end.stderr.strip().splitlines()) == 1


@shared
def test_a_database_that_is_not_there_is_one_clear_line(manage: Processes) -> None:
    end = manage.run("recover", env={"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none"})
    assert end.returncode == 2
    assert end.stderr.strip().splitlines()[-1].startswith("The database cannot be reached")
    assert "Traceback" not in end.stderr
