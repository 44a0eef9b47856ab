"""What goes wrong at a provider: one request, a message with the facts, never the key."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

import pytest

from tests.adapters.questions import KEY, connect, question, spec_with
from tests.adapters.raw_server import RawServer
from tests.fakes_models import FakeModels
from workflows.adapters.models import ModelClient, client_for
from workflows.engine.effects import ModelFailed


def failed(client: ModelClient) -> str:
    outcome = client.ask(question())
    assert isinstance(outcome, ModelFailed), outcome
    assert KEY not in outcome.error
    return outcome.error


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 529])
def test_a_refusal_is_not_repeated_and_says_its_status(
    client: ModelClient, provider: str, models: FakeModels, status: int
) -> None:
    repeated = "" if provider == "ollama" else KEY  # a provider may repeat the key it was given
    models.answers["draft"] = {"status": status, "json": {"error": {"message": f"about {repeated}", "type": "x"}}}
    error = failed(client)
    assert provider in error
    assert str(status) in error
    assert models.count("draft") == 1


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
def test_a_long_refusal_is_cut_after_the_key_was_hidden(provider: str, models: FakeModels, settings: Any) -> None:
    models.answers["draft"] = {"error": "x" * 295 + KEY}
    error = failed(connect(provider, models, settings))
    assert "x" * 295 in error
    assert KEY[:4] not in error


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
def test_a_refused_key_is_named_by_its_variable(provider: str, models: FakeModels, settings: Any) -> None:
    models.answers["draft"] = {"status": 401, "json": {"error": {"message": "bad key sk-hum***"}}}
    error = failed(connect(provider, models, settings))
    assert "MODEL_KEY" in error
    assert "sk-hum" not in error


def test_a_local_model_that_wants_a_key_is_told_apart_from_a_wrong_key(models: FakeModels) -> None:
    models.answers["draft"] = {"status": 401, "text": "no"}
    error = failed(client_for(spec_with({"provider": "ollama", "name": "m", "base_url": models.url}), {}))
    assert "api_key" in error


def test_the_providers_own_words_are_kept(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = {"error": "the model is being moved"}
    assert "the model is being moved" in failed(client)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 200, "text": "<html>"},
        {"status": 200, "json": {"unexpected": True}},
        {"status": 200, "json": []},
        {"status": 200, "json": {"choices": [], "content": None}},
        {"status": 200, "text": '{"choices": [{"mess'},
    ],
)
def test_an_answer_in_no_known_form_fails_clearly(
    client: ModelClient, provider: str, models: FakeModels, answer: Any
) -> None:
    models.answers["draft"] = answer
    assert provider in failed(client)
    assert models.count("draft") == 1


def test_a_redirect_is_not_followed(client: ModelClient, models: FakeModels) -> None:
    models.answers["draft"] = {"status": 307, "text": ""}
    assert "redirect" in failed(client)
    assert models.count("draft") == 1


def test_the_time_limit_names_provider_limit_and_how_to_raise_it(
    provider: str, models: FakeModels, settings: Any
) -> None:
    models.answers["draft"] = {"hang": 30}
    started = time.monotonic()
    error = failed(connect(provider, models, settings, timeout_ms=1000))
    assert time.monotonic() - started < 15
    for fact in (provider, "1000 ms", "timeout_ms", "--timeout"):
        assert fact in error
    assert models.count("draft") == 1


def test_the_limit_of_the_command_line_comes_before_the_specs(models: FakeModels) -> None:
    models.answers["draft"] = {"hang": 30}
    model = {"provider": "ollama", "name": "m", "base_url": models.url, "timeout_ms": 300}
    assert "300 ms" in failed(client_for(spec_with(model), {}))
    assert "200 ms" in failed(client_for(spec_with(model), {}, timeout_ms=200))


def test_a_dropped_connection_is_a_failure_and_not_repeated(
    client: ModelClient, provider: str, models: FakeModels
) -> None:
    models.answers["draft"] = {"drop": True}
    assert provider in failed(client).lower()
    assert models.count("draft") == 1


@pytest.mark.parametrize("base", ["http://127.0.0.1:9", "http://nowhere.invalid:11434"])
def test_an_unreachable_local_model_says_how_to_start_it(base: str) -> None:
    model = {"provider": "ollama", "name": "m", "base_url": base}
    error = failed(client_for(spec_with(model), {}, timeout_ms=3000))
    for fact in (base, "ollama serve", "no cloud provider"):
        assert fact in error


def test_a_local_model_that_takes_no_connection_in_time_is_named_with_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
        for _ in range(8):  # more than it lets wait, so that one more gets no answer
            caller = waiting.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        base = f"http://127.0.0.1:{full.getsockname()[1]}"
        error = failed(client_for(spec_with({"provider": "ollama", "name": "m", "base_url": base}), {}, timeout_ms=300))
    for fact in (base, "300 ms", "ollama serve"):
        assert fact in error


def test_without_a_base_url_a_local_model_is_looked_for_at_its_usual_place() -> None:
    client = client_for(spec_with({"provider": "ollama", "name": "m"}), {})
    assert "http://localhost:11434" in repr(client)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_a_base_url_may_be_written_with_or_without_its_version(models: FakeModels, suffix: str) -> None:
    models.answers["draft"] = "x"
    model = {"provider": "ollama", "name": "m", "base_url": models.url + suffix}
    client_for(spec_with(model), {}).ask(question())
    assert models.requests[0].path == "/v1/chat/completions"


def test_an_unreachable_cloud_provider_is_named(models: FakeModels, settings: Any) -> None:
    client = connect("openai", models, settings)
    models.close()
    error = failed(client)
    assert "openai" in error
    assert "refused" in error


@pytest.mark.parametrize("at_once", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"])
def test_headers_and_a_body_that_drip_meet_the_same_limit(at_once: bytes) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(at_once)
        server.drip(connection, b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 5000)

    with RawServer(answer) as server:
        started = time.monotonic()
        model = {"provider": "ollama", "name": "m", "base_url": server.url, "timeout_ms": 2000}
        assert "2000 ms" in failed(client_for(spec_with(model), {}))
        assert time.monotonic() - started < 30
        assert len(server.requests) == 1, "the limit is long enough for a busy machine to have read the request"


@pytest.mark.parametrize("base", ["http://clerk:humming@127.0.0.1:9", "clerk:humming@nowhere"])
@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_a_password_in_the_address_of_a_model_is_in_no_message(provider: str, base: str, settings: Any) -> None:
    settings.KAMPONG_OPENAI_API_URL = base
    model = {"provider": "openai", "name": "m", "api_key": "${MODEL_KEY}"}
    if provider == "ollama":
        model = {"provider": "ollama", "name": "m", "base_url": base}
    error = failed(client_for(spec_with(model), {"MODEL_KEY": KEY}))
    assert provider in error.lower()
    assert "humming" not in error
