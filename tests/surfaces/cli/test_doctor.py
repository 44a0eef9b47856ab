"""`doctor` at the command line: exit codes, the one object, and what it contacts only when it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import ASKING, HEAD, command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

CLOUD = 'model: {{ provider: {0}, name: big/model, api_key: "${{KEY}}" }}'
CALLING = (
    HEAD
    + """\
  tools:
    - { name: find, action: http_request, method: POST, url: "URL/x" }
    - { name: host, action: http_request, method: POST, url: "${BASE}/x" }
    - { name: tell, action: slack_post_message, token: "${SLACK}", channel: c, text: t }
  workflow:
    - { step: go, type: tool, tool: find }
"""
)


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    with FakeTools() as server:
        settings.KAMPONG_PRIVATE_ADDRESSES = ["*"]
        settings.KAMPONG_SLACK_API_URL = server.url + "/slack"
        settings.KAMPONG_OPENAI_API_URL = server.url + "/openai/v1"
        settings.KAMPONG_ANTHROPIC_API_URL = server.url + "/anthropic"
        settings.KAMPONG_OPENROUTER_API_URL = server.url + "/openrouter"
        for name, value in (("BASE", server.url), ("SLACK", "xoxb-secret"), ("KEY", "k-secret")):
            monkeypatch.setenv(name, value)
        yield server


def told(*words: str) -> list[dict[str, Any]]:
    """The checks of a call with `--json`; exit code and object agree."""
    result = command("doctor", "--json", *words)
    answer = result.object()
    assert list(answer) == ["ok", "checks"]
    assert all(list(check) == ["status", "area", "message"] for check in answer["checks"])
    assert answer["ok"] is not any(check["status"] == "fail" for check in answer["checks"])
    assert result.code == (0 if answer["ok"] else 2)
    assert "secret" not in result.out + result.err
    checks: list[dict[str, Any]] = answer["checks"]
    return checks


def test_a_sound_spec_passes_and_a_failure_exits_2(tmp_path: Path) -> None:
    sound = command("doctor", spec_at(tmp_path))
    broken = command("doctor", spec_at(tmp_path, ASKING.replace("  model:", "  modl:")))

    assert (sound.code, sound.err) == (0, "")
    assert sound.out.splitlines()[0].startswith("pass model: ollama")
    assert "Nothing here stops a run" in sound.out
    assert broken.code == 2
    assert "fail model: " in broken.out
    assert 'did you mean "model"?' in broken.out


def test_an_invalid_spec_exits_1_with_an_object_of_the_same_form(tmp_path: Path) -> None:
    path = spec_at(tmp_path, ASKING.replace("  role: Clerk\n", ""))

    result, missing = command("doctor", "--json", path), command("doctor", str(tmp_path / "nowhere.yaml"))

    assert result.code == missing.code == 1
    answer = result.object()
    assert answer["ok"] is False
    assert [(check["status"], check["area"]) for check in answer["checks"]] == [("fail", "spec")]
    assert "agent.role" in answer["checks"][0]["message"]
    assert "No such file" in missing.out


@pytest.mark.parametrize("words", [(), ("a.yaml", "b.yaml"), ("a.yaml", "--tools", "never"), ("a.yaml", "--fixtures")])
def test_wrong_use_is_64(words: tuple[str, ...]) -> None:
    assert command("doctor", *words).code == 64


def test_fixtures_lie_beside_the_spec_unless_it_is_said(tmp_path: Path, server: FakeTools) -> None:
    path = spec_at(tmp_path, CALLING.replace("URL", server.url))
    names = [f"{tool}.0123456789abcdef.json" for tool in ("find", "host", "tell")]
    (tmp_path / ".kampong" / "fixtures").mkdir(parents=True)
    for name in names:
        (tmp_path / ".kampong" / "fixtures" / name).write_text("{}")

    assert not [check for check in told(path, "--tools", "replay") if check["status"] == "fail"]
    missing = told(path, "--tools", "replay", "--fixtures", str(tmp_path))
    assert [check["area"] for check in missing if check["status"] == "fail"] == ["fixtures"] * 3


def test_nothing_is_contacted_unless_it_is_asked_for(tmp_path: Path, server: FakeTools) -> None:
    told(spec_at(tmp_path, CALLING.replace("URL", server.url)))

    assert server.requests == []
    assert server.failures == []


def test_online_connects_and_sends_no_request(
    tmp_path: Path, server: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CALLING.replace("URL", server.url).replace("http://127.0.0.1:9", server.url)

    checks = [check for check in told(spec_at(tmp_path, text), "--online") if check["area"] == "network"]

    assert [check["status"] for check in checks] == ["pass"] * 4
    assert any("the host that BASE gives can be reached" in check["message"] for check in checks)
    assert server.requests == []
    monkeypatch.setenv("BASE", "http://127.0.0.1:1")
    (gone,) = [check for check in told(spec_at(tmp_path, text), "--online") if check["status"] == "fail"]
    assert "the host that BASE gives cannot be reached" in gone["message"]
    assert "127.0.0.1:1" not in gone["message"]


def test_online_goes_only_where_a_call_may_go(tmp_path: Path, server: FakeTools, settings: Settings) -> None:
    settings.KAMPONG_PRIVATE_ADDRESSES = []
    text = CALLING.replace("URL", server.url.replace("127.0.0.1", "localhost"))

    checks = [check for check in told(spec_at(tmp_path, text), "--online") if check["area"] == "network"]

    assert any('tool "find"' in check["message"] and check["status"] == "fail" for check in checks)
    assert any("KAMPONG_PRIVATE_ADDRESSES" in check["message"] for check in checks)


def test_where_a_variable_leads_is_told_in_no_refusal(
    tmp_path: Path, server: FakeTools, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KAMPONG_PRIVATE_ADDRESSES = []
    text = CALLING.replace("URL", "https://{{ input }}")
    for base in ("http://localhost:1", "http://no-such-host.invalid"):
        monkeypatch.setenv("BASE", base)
        checks = told(spec_at(tmp_path, text), "--online")
        (check,) = [one for one in checks if one["area"] == "network" and 'tool "host"' in one["message"]]
        assert check["status"] == "fail"
        assert "localhost" not in check["message"]
        assert "no-such-host" not in check["message"]


def test_nobody_is_contacted_for_a_tool_that_is_replayed(tmp_path: Path, server: FakeTools) -> None:
    text = CALLING.replace("URL", server.url).replace("http://127.0.0.1:9", server.url)

    checks = told(spec_at(tmp_path, text), "--tools", "replay", "--online", "--probe")

    assert [check["message"].partition(":")[0] for check in checks if check["area"] == "network"] == [
        "the model of ollama"
    ]
    assert [request.method for request in server.requests] == ["GET"]


READS = {
    "openai": "GET /openai/v1/models/big%2Fmodel",
    "anthropic": "GET /anthropic/v1/models/big%2Fmodel",
    "openrouter": "GET /openrouter/key",
}


@pytest.mark.parametrize("provider", READS)
@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"status": 200, "json": {"id": "big/model"}}, "pass", "takes the key"),
        ({"status": 401, "json": {"error": {"message": "bad key k-secret"}}}, "fail", "refuses the key in KEY"),
        ({"status": 500, "text": "k-secret"}, "warn", "does not tell"),
        ({"error": "gone"}, "fail", "did not answer"),
    ],
)
def test_probe_asks_the_provider_for_the_smallest_read(
    provider: str, answer: dict[str, Any], status: str, words: str, tmp_path: Path, server: FakeTools
) -> None:
    server.script[READS[provider]] = answer
    model = ASKING.splitlines()[6].strip()

    checks = told(spec_at(tmp_path, ASKING.replace(model, CLOUD.format(provider))), "--probe")

    assert server.failures == []
    assert [(check["status"], words in check["message"]) for check in checks if check["area"] == "model"][1:] == [
        (status, True)
    ]
    (request,) = server.requests
    sent = request.header("x-api-key") if provider == "anthropic" else request.header("authorization")
    assert sent in ("k-secret", "Bearer k-secret")


@pytest.mark.parametrize(
    ("body", "status"),
    [({"error": {"code": "model_not_found"}}, "fail"), ({"detail": "not found"}, "warn")],
)
def test_a_model_that_the_provider_does_not_know_fails_when_it_says_so(
    body: Any, status: str, tmp_path: Path, server: FakeTools
) -> None:
    server.script[READS["openai"]] = {"status": 404, "json": body}
    model = ASKING.splitlines()[6].strip()

    checks = told(spec_at(tmp_path, ASKING.replace(model, CLOUD.format("openai"))), "--probe")

    assert [check["status"] for check in checks if check["area"] == "model"] == ["pass", status]


@pytest.mark.parametrize(
    ("names", "status"), [(["test-model:latest"], "pass"), (["other:latest"], "fail"), (None, "warn")]
)
def test_probe_asks_a_local_server_for_its_models(
    names: list[str] | None, status: str, tmp_path: Path, server: FakeTools
) -> None:
    listed = {"models": [{"name": name} for name in names]} if names is not None else {}
    server.script["GET /api/tags"] = {"status": 200, "json": listed}

    checks = told(spec_at(tmp_path, ASKING.replace("http://127.0.0.1:9", server.url + "/v1")), "--probe")

    assert [check["status"] for check in checks if check["area"] == "model"] == ["pass", status]


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"ok": True}, "pass", "takes the token in SLACK"),
        ({"ok": False, "error": "invalid_auth"}, "fail", "invalid_auth"),
        ({"ok": False, "error": "xoxb-secret"}, "fail", "no reason given"),
        ([], "warn", "does not tell"),
    ],
)
def test_probe_asks_slack_whether_it_takes_the_token_and_calls_no_tool(
    answer: Any, status: str, words: str, tmp_path: Path, server: FakeTools
) -> None:
    server.script |= {"POST /slack/auth.test": {"json": answer}, "GET /api/tags": {"json": {"models": []}}}
    text = CALLING.replace("URL", server.url).replace("http://127.0.0.1:9", server.url)

    checks = told(spec_at(tmp_path, text), "--probe")

    (slack,) = [check for check in checks if "Slack" in check["message"]]
    assert (slack["status"], words in slack["message"]) == (status, True)
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert server.requests[1].header("authorization") == "Bearer xoxb-secret"


def test_a_server_that_speaks_no_tls_fails_for_https(tmp_path: Path, server: FakeTools) -> None:
    text = CALLING.replace("URL", server.url.replace("http:", "https:"))

    (check,) = [one for one in told(spec_at(tmp_path, text), "--online") if 'tool "find"' in one["message"]]

    assert check["status"] == "fail"
    assert "cannot be reached" in check["message"]
