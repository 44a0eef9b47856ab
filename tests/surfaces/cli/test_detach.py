"""`run_spec --detach`: stored at its pause, decided later by another command (design 5.1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.models import ApprovalRequest
from tests.conftest import People
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import ASKING, HEAD, command, spec_at
from workflows.models import Run, Status

pytestmark = pytest.mark.django_db(transaction=True)

DETACH = ("--input", "tea", "--detach")


def test_it_stores_the_pause_and_prints_what_another_program_needs(tmp_path: Path) -> None:
    path = spec_at(tmp_path)
    told = command("run_spec", path, *DETACH, "--json")
    assert told.code == 3, told.err
    answer = told.object()
    request = ApprovalRequest.objects.get()
    assert list(answer) == ["success", "status", "id", "key", "expiresAt"]
    assert (answer["success"], answer["status"]) == (True, "awaiting_approval")
    assert answer["key"] == str(request.key)
    assert answer["expiresAt"].endswith("Z")
    run = Run.objects.get()
    assert (answer["id"], run.status, run.source) == (str(run.uuid), Status.AWAITING, path)


def test_without_json_it_says_where_to_go_on(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), *DETACH)
    assert told.code == 3
    key = str(ApprovalRequest.objects.get().key)
    assert f"approvals approve {key} --as USER" in told.out  # nobody was named yet
    assert "Go on with tea?" in told.out
    assert told.err == ""


def test_a_relative_path_is_stored_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spec_at(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert command("run_spec", "spec.yaml", *DETACH).code == 3
    assert Run.objects.get().source == path


def test_a_run_that_asks_nobody_ends_here(tmp_path: Path) -> None:
    text = HEAD + "  workflow: [{ step: go, type: tool, tool: nowhere }]\n"
    told = command("run_spec", spec_at(tmp_path, text), *DETACH, "--json")
    assert told.code == 2
    answer = told.object()
    assert (answer["success"], answer["status"], answer["id"]) == (False, "failed", str(Run.objects.get().uuid))
    assert "nowhere" in answer["error"]
    assert "nowhere" in command("run_spec", spec_at(tmp_path, text), *DETACH).err


def test_headers_that_look_like_credentials_are_not_stored(tmp_path: Path) -> None:
    words = ["--header", "Authorization=Bearer canary", "--header", "X-Team=shop"]
    assert command("run_spec", spec_at(tmp_path), *DETACH, *words).code == 3
    assert "canary" not in Run.objects.get().trigger
    assert "shop" in Run.objects.get().trigger


def test_whoever_has_no_account_starts_as_the_systems_user(tmp_path: Path) -> None:
    command("run_spec", spec_at(tmp_path), *DETACH)
    run = Run.objects.get()
    assert "@" in run.started_by
    assert (run.started_by_user_id, run.surface) == (None, "cli")


def test_a_named_user_needs_the_permission_to_start(tmp_path: Path, people: People, settings: Settings) -> None:
    settings.KAMPONG_CLI_USER = "stranger"
    told = command("run_spec", spec_at(tmp_path), *DETACH, "--json")
    assert told.code == 2
    answer = told.object()
    assert (answer["success"], answer["phase"], answer["code"]) == (False, "execution", "not_allowed")
    assert "workflows.start_run" in answer["error"]
    assert not Run.objects.exists()
    settings.KAMPONG_CLI_USER = "requester"
    assert command("run_spec", spec_at(tmp_path), *DETACH).code == 3
    assert Run.objects.get().started_by_user_id == people.requester.pk


def test_a_run_that_cannot_be_created_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    model = '{ provider: openai, name: m, api_key: "${NO_SUCH_KEY}" }'
    text = ASKING.replace('{ provider: ollama, name: test-model, base_url: "http://127.0.0.1:9" }', model)
    told = command("run_spec", spec_at(tmp_path, text), *DETACH, "--json")
    assert told.code == 2
    assert told.object()["phase"] == "execution"
    assert not Run.objects.exists()


def test_an_agent_id_that_cannot_be_stored_is_the_specs_fault(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ASKING.replace("id: clerk", 'id: "a clerk"')), *DETACH)
    assert told.code == 1
    assert "a clerk" in told.err
    assert not Run.objects.exists()


def test_a_secret_of_the_environment_is_not_in_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    text = (
        HEAD
        + """\
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "http://127.0.0.1:9/pay"
      headers: { Authorization: "Bearer ${PAY_TOKEN}" }
      requires_approval: true
  workflow: [{ step: settle, type: tool, tool: pay }]
"""
    )
    told = command("run_spec", spec_at(tmp_path, text), *DETACH)
    assert told.code == 3
    assert "tok-canary" not in told.out + told.err


def test_the_steps_that_ran_before_the_pause_are_told(tmp_path: Path) -> None:
    with FakeTools({"GET /list": {"json": []}}) as tools:
        text = (
            HEAD
            + f"""\
  tools: [{{ name: fetch, action: http_request, method: GET, url: "{tools.url}/list" }}]
  workflow:
    - {{ step: look, type: tool, tool: fetch }}
    - {{ step: ask, type: approval }}
"""
        )
        told = command("run_spec", spec_at(tmp_path, text), *DETACH)
        quiet = command("run_spec", spec_at(tmp_path, text), *DETACH, "--json")
    lines = told.out.splitlines()
    assert lines[0] == "look running..."
    assert lines[1].startswith("look completed in ")
    assert lines[2] == "ask running..."
    assert lines[3].endswith(" waits for approval.")
    assert (quiet.object()["status"], quiet.err) == ("awaiting_approval", "")


def test_its_waits_are_told_in_the_same_words_as_those_of_a_run_in_memory(tmp_path: Path) -> None:
    with FakeTools({"GET /list": [{"status": 503}, {"json": {}}] * 3}) as tools:
        text = (
            HEAD
            + f"""\
  tools:
    - name: fetch
      action: http_request
      method: GET
      url: "{tools.url}/list"
      retry: {{ max: 1, base_ms: 100 }}
      PACE
  workflow: [{{ step: look, type: tool, tool: fetch }}]
"""
        )
        retried = command("run_spec", spec_at(tmp_path, text.replace("PACE", "")), *DETACH)
        quiet = command("run_spec", spec_at(tmp_path, text.replace("PACE", "")), *DETACH, "--json")
        paced = command("run_spec", spec_at(tmp_path, text.replace("PACE", "pace: { rps: 2 }")), *DETACH)
    assert "look running...\nlook waits 0.1 s before the next attempt\nlook completed in " in retried.out
    assert (quiet.object()["status"], quiet.err) == ("completed", "")
    assert re.search(r"\nlook waits 0\.\d s for its turn \(pace\)\nlook completed in ", paced.out), paced.out
