"""A recorded run repeats offline: the same trace from each example, and from a spec full of secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.offline import SECRETS, kept, leaks, three_times
from tests.surfaces.cli.running import Told, command, spec_at
from tests.surfaces.cli.test_examples import ASKED, DEMO, EXAMPLES, INVOICE, PAYOUT, PLACED, SERVICE, SURE
from workflows.engine.storing import STEPS
from workflows.spec.load import load

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

MODELS: dict[str, Any] = {
    "judge": {"object": SURE},
    "sort": {"result": {"desk": "repairs", "urgent": True}, "confidence": 0.9},
    "reply": "Thank you.",
}
#: Each example with its input and the answers to its prompts.
PLAYED = [
    ("refund.yaml", ASKED, "y\n", {}),
    ("refund.yaml", ASKED, "n: too late\n", {}),
    ("refund.yaml", ASKED, "y\ny\n", {"judge": {"object": SURE | {"confidence": 0.4}}}),
    ("refund.yaml", ASKED, "", {"judge": [{"object": {"due": "perhaps"}}, {"object": {"due": 7}}] * 2}),
    ("refund.yaml", ASKED, "", {"judge": {"error": "the model is not well"}}),
    ("invoice-approval.yaml", INVOICE, "y\n", {}),
    ("payout.yaml", PAYOUT, 'y {"account": "main"}\n', {}),
    ("handover.yaml", "Lift 2 is out.", "y\n", {}),
    ("market.yaml", "", "", {}),
    ("orders.yaml", PLACED, "y\n", {}),
    ("triage.yaml", "Water!", "y\n", {}),
    ("triage.yaml", "Hello", "", {"sort": {"result": {"desk": "sales", "urgent": False}, "confidence": 0.9}}),
    ("triage.yaml", "Hello", "n\n", {"sort": {"result": {"desk": "sales", "urgent": False}, "confidence": 0.1}}),
]


@pytest.fixture
def tools(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTools]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "demo")
    with FakeTools(SERVICE, keep_alive=False) as tools:
        settings.KAMPONG_SLACK_API_URL = f"{tools.url}/slack"
        yield tools


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels(MODELS, keep_alive=False) as models:
        yield models


def keeps_state(path: Path) -> bool:
    """Whether what the example does depends on what earlier runs left in the store."""
    spec = load(path.read_bytes()).spec
    return spec is not None and any(isinstance(step, STEPS) for step in spec.agent.workflow)


def test_every_example_is_played() -> None:
    assert {name for name, *_ in PLAYED} == {path.name for path in EXAMPLES if not keeps_state(path)}


@pytest.mark.parametrize(("name", "given", "typed", "answers"), PLAYED)
def test_an_example_gives_the_same_trace_live_recorded_and_replayed(
    name: str, given: str, typed: str, answers: dict[str, Any], tools: FakeTools, models: FakeModels, tmp_path: Path
) -> None:
    models.answers |= answers
    example = next(path for path in EXAMPLES if path.name == name).read_text("utf-8")
    text = example.replace(f'base_url: "{DEMO}"', f'base_url: "{models.url}"').replace(DEMO, tools.url)
    spec = Path(spec_at(tmp_path, text))
    live, recorded, replayed = three_times(spec, "--input", given, tools=tools, models=models, text=typed)
    assert models.failures == tools.failures == []
    assert live.object()["trace"]
    assert (recorded.code, recorded.object()) == (live.code, live.object())
    assert (replayed.code, replayed.object()) == (live.code, live.object()), replayed.err
    assert any(path.startswith("models/") for path in kept(tmp_path / ".kampong" / "fixtures")) or not models.requests


# Secrets ---------------------------------------------------------------------------------------------------------

SPEC = """\
version: "1.1"
agent:
  id: clerk
  name: Clerk
  role: Clerk
  goal: Go on.
  model: { provider: openai, name: test-model, api_key: "${MODEL_KEY}" }
  tools:
    - name: look up
      action: http_request
      method: GET
      url: "TOOLS/look"
      query: { key: "${SERVICE_KEY}" }
      headers: { Authorization: "Bearer ${SERVICE_TOKEN}" }
    - name: send
      action: http_request
      method: POST
      url: "TOOLS/send"
      query: { said: "{{ look.said }}" }
      body: { json: { passed: "{{ look.said }}", token: "${SERVICE_TOKEN}", asked: "{{ think.text }}" } }
      response: { mode: text }
    - name: refuse
      action: http_request
      method: POST
      url: "TOOLS/refuse?key=${SERVICE_KEY}"
      body: { form: { token: "${SERVICE_TOKEN}" } }
  workflow:
    - { step: look, type: tool, tool: look up }
    - { step: think, action: think, query: "{{ look.said }}" }
    - { step: send, type: tool, tool: send }
    - { step: refuse, type: tool, tool: refuse }
"""


def secret_spec(folder: Path, tools: FakeTools) -> Path:
    return Path(spec_at(folder, SPEC.replace("TOOLS", tools.url)))


def echoing(secrets: dict[str, str], tools: FakeTools, models: FakeModels) -> None:
    """Everybody repeats every secret."""
    everything = " and ".join(secrets.values())
    tools.script = {
        "GET /look": {"json": {"said": everything, everything: everything}},
        "POST /send": {"text": everything},
        "POST /refuse": {"status": 403, "json": {"why": everything}},
    }
    models.answers = {"think": f"I was told {everything}."}


def set_all(monkeypatch: pytest.MonkeyPatch, secrets: dict[str, str]) -> None:
    for name, secret in secrets.items():
        monkeypatch.setenv(name, secret)


@pytest.fixture
def provider(models: FakeModels, settings: Any) -> None:
    settings.KAMPONG_OPENAI_API_URL = models.openai_url


@pytest.mark.usefixtures("provider")
def test_no_fixture_holds_a_secret_in_any_spelling_and_the_run_replays_all_the_same(
    tools: FakeTools, models: FakeModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, SECRETS)
    echoing(SECRETS, tools, models)
    spec, folder = secret_spec(tmp_path, tools), tmp_path / "kept"
    live, recorded, replayed = three_times(spec, "--input", "x", tools=tools, models=models, folder=folder)
    assert tools.failures == models.failures == []
    assert len(tools.requests) == 6
    assert {path.split(".")[0] for path in kept(folder)} == {"look_up", "send", "refuse", "models/think"}
    assert leaks(folder, SECRETS) == []
    assert "[REDACTED]" in kept(folder)[next(path for path in kept(folder) if path.startswith("models/"))]
    assert recorded.object() == live.object()
    # Where a service repeated a secret, a recording has a gap; everything else is the same.
    assert replayed.object() == without(live.object()), replayed.object()
    assert replayed.code == live.code == 2
    assert "403" in replayed.object()["error"]


def without(value: Any) -> Any:
    """The value with the secrets replaced."""
    if isinstance(value, dict):
        return {without(key): without(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without(item) for item in value]
    if isinstance(value, str):
        for secret in SECRETS.values():
            value = value.replace(secret, "[REDACTED]")
    return value


@pytest.mark.usefixtures("provider")
def test_a_rotated_secret_finds_its_fixtures(
    tools: FakeTools, models: FakeModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, SECRETS)
    echoing(SECRETS, tools, models)
    spec = secret_spec(tmp_path, tools)
    words = ["run_spec", str(spec), "--input", "x", "--json"]
    command(*words, "--tools", "record", "--models", "record")
    tools.close()
    models.close()
    replays: list[Told] = []
    rotated = {name: f"new {number} {secret[::-1]}" for number, (name, secret) in enumerate(SECRETS.items())}
    for secrets in (SECRETS, rotated):
        set_all(monkeypatch, secrets)
        replays.append(command(*words, "--tools", "replay", "--models", "replay"))
    assert "403" in replays[0].object()["error"]
    assert replays[1].object() == replays[0].object()


@pytest.mark.usefixtures("provider")
def test_a_replayed_model_needs_no_key_and_the_tools_variables_must_still_be_set(
    tools: FakeTools, models: FakeModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, SECRETS)
    tools.script = {"GET /look": {"json": {"said": "hello"}}, "POST /send": {"text": "ok"}, "POST /refuse": {"json": 1}}
    models.answers = {"think": "Fine."}
    words = ["run_spec", str(secret_spec(tmp_path, tools)), "--input", "x", "--json"]
    recorded = command(*words, "--tools", "record", "--models", "record")
    assert recorded.code == 0, recorded.object()
    asked = len(models.requests)
    monkeypatch.delenv("MODEL_KEY")
    assert command(*words, "--tools", "replay", "--models", "replay").object() == recorded.object()
    assert len(models.requests) == asked
    assert "MODEL_KEY" in command(*words, "--tools", "replay", "--models", "record").object()["error"]
    monkeypatch.delenv("SERVICE_KEY")
    told = command(*words, "--tools", "replay", "--models", "replay")
    assert "SERVICE_KEY is not set" in told.object()["error"]


TELLING = """\
  tools:
    - { name: ask, action: http_request, method: POST, url: "TOOLS/ask", body: { json: { v: "{{ vars }}" } } }
  workflow:
    - { step: ask, type: tool, tool: ask }
    - { step: think, action: think, query: "{{ ask }}" }
vars:
  member: { type: string, default: "${SERVICE_TOKEN}" }
  doors: { type: list, default: "${SERVICE_KEY}" }
  region: { type: string, default: "${REGION}" }
"""


@pytest.mark.usefixtures("provider")
def test_a_var_that_reads_a_secret_is_hidden_and_another_is_data(
    tools: FakeTools, models: FakeModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    items = {"one": "canary four", "two": "canary-five"}
    set_all(monkeypatch, SECRETS | {"SERVICE_KEY": ", ".join(items.values()), "REGION": "north"})
    token = SECRETS["SERVICE_TOKEN"]
    tools.script = {"POST /ask": {"json": {"said": [token, *items.values()], "region": "north"}}}
    models.answers = {"think": f"{token} and {items['one']}"}
    text = SPEC.partition("  tools:")[0] + TELLING.replace("TOOLS", tools.url)
    spec, folder = Path(spec_at(tmp_path, text)), tmp_path / "kept"
    live, _, replayed = three_times(spec, "--input", "x", tools=tools, models=models, folder=folder)
    assert (live.code, replayed.code) == (0, 0), replayed.object()
    assert leaks(folder, SECRETS | items) == []
    assert "north" in "".join(kept(folder).values())
