"""Each mistake of an operator is caught by a check with its id and a hint that names the setting to fix."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.db import connection
from django.test import override_settings

from kampong import checks
from kampong.reference import check_promises
from tests.conftest import ROOT

#: Processes of their own that open no database: what they say is the same on both.
shared = pytest.mark.everyday("sqlite")

PUBLIC: dict[str, Any] = {
    "KAMPONG_PRODUCTION": True,
    "KAMPONG_TESTING": False,
    "KAMPONG_TRUST_FORWARDED_PROTO": True,
    "KAMPONG_PRIVATE_ADDRESSES": [],
    "SECRET_KEY": "k" * 50,
    "SECRET_KEY_GIVEN": True,
    "ALLOWED_HOSTS": ["kampong.example.org"],
    "CSRF_TRUSTED_ORIGINS": ["https://kampong.example.org"],
    "KAMPONG_BASE_URL": "https://kampong.example.org",
}


def ours(databases: list[str] | None = None, **changes: Any) -> dict[str, CheckMessage]:
    """Our findings by id, with a deployment that is right but for the changes."""
    with override_settings(**PUBLIC | changes):
        found = run_checks(databases=databases)
    return {message.id: message for message in found if message.id and message.id.startswith("kampong.")}


def test_a_right_deployment_passes() -> None:
    assert ours() == {}


def test_a_laptop_needs_no_settings() -> None:
    assert (
        ours(KAMPONG_PRODUCTION=False, ALLOWED_HOSTS=["localhost"], CSRF_TRUSTED_ORIGINS=[], KAMPONG_BASE_URL="") == {}
    )


MISTAKES = [
    ("kampong.E001", {"SECRET_KEY_GIVEN": False}, "SECRET_KEY"),
    ("kampong.E001", {"SECRET_KEY": "short"}, "SECRET_KEY"),
    ("kampong.E002", {"ALLOWED_HOSTS": ["localhost", "127.0.0.1"]}, "ALLOWED_HOSTS"),
    ("kampong.E002", {"ALLOWED_HOSTS": ["*", "kampong.example.org"]}, "ALLOWED_HOSTS"),
    ("kampong.E003", {"CSRF_TRUSTED_ORIGINS": []}, "CSRF_TRUSTED_ORIGINS"),
    ("kampong.E003", {"CSRF_TRUSTED_ORIGINS": ["http://kampong.example.org"]}, "CSRF_TRUSTED_ORIGINS"),
    ("kampong.E004", {"KAMPONG_TESTING": True}, "KAMPONG_TESTING"),
    ("kampong.E006", {"KAMPONG_HEARTBEAT_SECONDS": 31.0}, "KAMPONG_HEARTBEAT_SECONDS"),
    ("kampong.E006", {"KAMPONG_HEARTBEAT_SECONDS": 0.0}, "KAMPONG_HEARTBEAT_SECONDS"),
    ("kampong.E008", {"KAMPONG_PRIVATE_ADDRESSES": ["http://inside.example"]}, "KAMPONG_PRIVATE_ADDRESSES"),
    ("kampong.E009", {"KAMPONG_BASE_URL": ""}, "KAMPONG_BASE_URL"),
    ("kampong.E009", {"KAMPONG_BASE_URL": "http://kampong.example.org"}, "KAMPONG_BASE_URL"),
    ("kampong.E009", {"KAMPONG_BASE_URL": "https://kampong.example.org/?page=1"}, "KAMPONG_BASE_URL"),
    ("kampong.E009", {"KAMPONG_BASE_URL": "https://kampong.example.org/admin"}, "KAMPONG_BASE_URL"),
    ("kampong.E010", {"KAMPONG_BASE_URL": "https://other.example.org/kampong"}, "ALLOWED_HOSTS"),
    ("kampong.E011", {"KAMPONG_WEBHOOK_SECRETS": {"clerk": "a secret and no name"}}, "KAMPONG_WEBHOOK_SECRETS"),
    ("kampong.E011", {"KAMPONG_WEBHOOK_SECRETS": "clerk=NAME"}, "KAMPONG_WEBHOOK_SECRETS"),
    ("kampong.E012", {"KAMPONG_KEEP_FAILED": 90}, "KAMPONG_KEEP_FAILED"),
    ("kampong.E012", {"KAMPONG_KEEP_DECISIONS": "90d 100"}, "KAMPONG_KEEP_DECISIONS"),
]


@pytest.mark.parametrize(("code", "changes", "setting"), MISTAKES)
def test_a_mistake_is_found_and_the_setting_named(code: str, changes: dict[str, Any], setting: str) -> None:
    found = ours(**changes)
    assert list(found) == [code]
    assert setting in (found[code].hint or "")


def test_an_operator_is_asked_about_the_proxys_header() -> None:
    with override_settings(**PUBLIC):
        assert checks.check_forwarded_proto(None) == []
        delattr(settings, "KAMPONG_TRUST_FORWARDED_PROTO")  # undone with the override
        found = checks.check_forwarded_proto(None)
    assert [message.id for message in found] == ["kampong.W001"]
    assert "KAMPONG_TRUST_FORWARDED_PROTO" in (found[0].hint or "")


def test_an_operator_is_asked_which_private_addresses_tools_may_call() -> None:
    with override_settings(**PUBLIC):
        delattr(settings, "KAMPONG_PRIVATE_ADDRESSES")
        found = checks.check_private_addresses(None)
    assert [message.id for message in found] == ["kampong.E008"]
    assert "KAMPONG_PRIVATE_ADDRESSES" in (found[0].hint or "")
    assert ours(KAMPONG_PRIVATE_ADDRESSES=["*"]) == {}


@shared
def test_a_lease_shorter_than_three_busy_timeouts_is_found() -> None:
    """On PostgreSQL there is no such timeout, so this looks at the settings of a SQLite project of its own."""
    variables = {
        "DATABASE_URL": "sqlite:///:memory:",
        "KAMPONG_LEASE_SECONDS": "0.3",
        "KAMPONG_HEARTBEAT_SECONDS": "0.1",
    }
    finished = check_in_a_process(variables)
    assert finished.returncode == 1
    assert "kampong.E005" in finished.stderr
    assert "KAMPONG_LEASE_SECONDS" in finished.stderr


def check_in_a_process(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "manage.py"), "check", *arguments]
    env = {name: text for name, text in os.environ.items() if not name.startswith("KAMPONG_")} | variables
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@shared
def test_the_environment_of_a_public_site_passes_the_checks() -> None:
    variables = {
        "KAMPONG_PRODUCTION": "1",
        "KAMPONG_PRIVATE_ADDRESSES": "",
        "KAMPONG_TRUST_FORWARDED_PROTO": "1",
        "SECRET_KEY": "k" * 50,
        "ALLOWED_HOSTS": "kampong.example.org",
        "CSRF_TRUSTED_ORIGINS": "https://kampong.example.org",
        "KAMPONG_BASE_URL": "https://kampong.example.org/desk/",
    }
    finished = check_in_a_process(variables, "--fail-level", "WARNING")
    assert finished.returncode == 0, finished.stderr


MAILING = """\
version: "1.2"
agent:
  id: mailing
  name: Mailing
  role: Clerk
  goal: Ask.
  model: {provider: ollama, name: test-model}
  workflow:
    - {step: ask, type: approval, notify: [{type: email, to: [ana@example.org]}]}
"""


@shared
def test_a_spec_that_tells_people_wants_an_address_and_a_mail_server(tmp_path: Path) -> None:
    (tmp_path / "mailing.yaml").write_text(MAILING)
    specs = {"KAMPONG_SPECS": str(tmp_path)}
    told = check_in_a_process(specs)
    assert told.returncode == 0
    for code, setting in (("kampong.W002", "KAMPONG_BASE_URL"), ("kampong.W003", "EMAIL_URL")):
        assert re.search(rf"{code}\).*\n.*HINT: Set {setting}", told.stderr), told.stderr
    there = {"KAMPONG_BASE_URL": "http://127.0.0.1:8080", "EMAIL_URL": "consolemail://"}
    told = check_in_a_process(specs | there, "--fail-level", "WARNING")
    assert told.returncode == 0, told.stderr


@shared
@pytest.mark.parametrize(
    "line",
    [
        "    - {step: ask, type: approval, notify: [{type: slack, token: '${T}', channel: c}]}",
        "    - {step: ask, type: approval}\n  approval_notifier: {type: slack, token: '${T}', channel: c}",
    ],
)
def test_a_spec_that_asks_in_slack_wants_the_secret_of_the_answers(line: str, tmp_path: Path) -> None:
    (tmp_path / "asking.yaml").write_text(MAILING.rpartition("    - ")[0] + line + "\n")
    given = {"KAMPONG_SPECS": str(tmp_path), "KAMPONG_BASE_URL": "http://127.0.0.1:8080"}
    told = check_in_a_process(given)
    assert re.search(r"kampong.W004\).*\n.*HINT: Set SLACK_SIGNING_SECRET", told.stderr), told.stderr
    told = check_in_a_process(given | {"SLACK_SIGNING_SECRET": "s"}, "--fail-level", "WARNING")
    assert told.returncode == 0, told.stderr


HOOKED = MAILING.replace("  workflow:", "  trigger: {type: webhook, secret: '${HOOK}'}\n  workflow:")


@shared
@pytest.mark.parametrize(
    ("text", "setting"),
    [(HOOKED, {}), (MAILING.replace('"1.2"', '"1.1"'), {"KAMPONG_WEBHOOK_SECRETS": " mailing = HOOK, other=B,"})],
)
def test_a_spec_that_takes_signed_webhooks_wants_their_secret(
    text: str, setting: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "hooked.yaml").write_text(text.replace(", notify: [{type: email, to: [ana@example.org]}]", ""))
    given = {"KAMPONG_SPECS": str(tmp_path)} | setting
    for wrong in ("", "whsec_not base64"):
        told = check_in_a_process(given | {"HOOK": wrong})
        assert re.search(r"kampong.W005\).*mailing.*HOOK.*\n.*HINT: Set HOOK", told.stderr), told.stderr
        assert "not base64" not in told.stderr
    told = check_in_a_process(given | {"HOOK": "s"}, "--fail-level", "WARNING")
    assert told.returncode == 0, told.stderr


@pytest.mark.django_db
def test_a_superuser_of_the_database_is_refused_in_production() -> None:
    if connection.vendor != "postgresql":
        assert "kampong.E007" not in ours(databases=["default"])
        return
    assert "kampong.E007" in ours(databases=["default"])
    assert "kampong.E007" not in ours(databases=["default"], KAMPONG_PRODUCTION=False)
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain_for_a_check")  # gone again with this test's transaction
        cursor.execute("SET LOCAL ROLE plain_for_a_check")
        assert "kampong.E007" not in ours(databases=["default"])
        cursor.execute("RESET ROLE")


def test_every_check_is_triggered_by_a_test_here() -> None:
    tested = {code.removeprefix("kampong.") for code, _, _ in MISTAKES} | {
        "W001",
        "W002",
        "W003",
        "W004",
        "W005",
        "E005",
        "E007",
        "E020",  # these three in tests/brokers/test_checks.py
        "E021",
        "E022",
    }
    assert {code for code, _ in check_promises(checks)} == tested
