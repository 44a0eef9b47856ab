"""A model client that cannot be made says which fact is missing, and contacts nobody (engine semantics 2.1, 4.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.questions import KEY, spec_with
from workflows.adapters.models import client_for
from workflows.errors import ModelUnavailable


def unavailable(model: dict[str, Any] | None, environ: dict[str, str]) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        client_for(spec_with(model), environ)
    return caught.value.message


def test_without_a_model_block_it_names_the_agent_and_what_to_write() -> None:
    message = unavailable(None, {})
    for fact in ('"clerk"', "provider", "name", "key"):
        assert fact in message


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
@pytest.mark.parametrize("environ", [{}, {"MODEL_KEY": ""}])
def test_an_unset_or_empty_key_is_named_with_its_provider(provider: str, environ: dict[str, str]) -> None:
    message = unavailable({"provider": provider, "name": "m", "api_key": "${MODEL_KEY}"}, environ)
    assert "MODEL_KEY" in message
    assert provider in message


def test_a_local_model_needs_no_key_but_one_that_is_named_must_be_there() -> None:
    client_for(spec_with({"provider": "ollama", "name": "m"}), {})
    message = unavailable({"provider": "ollama", "name": "m", "api_key": "${LOCAL_KEY}"}, {})
    assert "LOCAL_KEY" in message


def test_an_unknown_provider_is_named_with_the_known_ones() -> None:
    spec = spec_with({"provider": "ollama", "name": "m"})
    block = spec.agent.model
    assert block is not None
    # Past the loader, which refuses it first: the engine may be handed a spec by other ways.
    odd = block.model_copy(update={"provider": "acme"})
    spec = spec.model_copy(update={"agent": spec.agent.model_copy(update={"model": odd})})
    with pytest.raises(ModelUnavailable) as caught:
        client_for(spec, {})
    for name in ("acme", "anthropic", "openai", "ollama", "openrouter"):
        assert name in caught.value.message


def test_the_key_does_not_show_in_the_client() -> None:
    model = {"provider": "openai", "name": "m", "api_key": "${MODEL_KEY}"}
    assert KEY not in repr(client_for(spec_with(model), {"MODEL_KEY": KEY}))
