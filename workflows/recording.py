"""How one run's calls are answered: by the services, with a recording made, or from one (engine semantics 16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workflows.adapters import fixtures, http, models
from workflows.adapters.fixtures import Fixtures, Mode
from workflows.adapters.models import ModelClient
from workflows.adapters.recorded_models import Asking, RecordingModel, ReplayingModel
from workflows.adapters.recorded_tools import RecordingSource, ReplayingSource
from workflows.adapters.sending import Sender
from workflows.engine.vars import secrets_in
from workflows.errors import FixturesUnusable
from workflows.spec.model import Spec
from workflows.spec.patterns import ENV_PLACEHOLDER


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The modes of a run, and the folder of its fixtures."""

    tools: Mode = "live"
    models: Mode = "live"
    folder: Path = fixtures.DEFAULT

    def check(self) -> None:
        """Raise FixturesUnusable when a run must not start like this."""
        modes = {self.tools, self.models}
        problem = None if modes == {"live"} else fixtures.why_not(self.folder, writing="record" in modes)
        if problem is None and "record" in modes:
            # Before the first call: one that was made and could not be kept would fail its step after its effect.
            problem = Fixtures(self.folder).prepare()
        if problem is not None:
            raise FixturesUnusable(f"{problem}. Name another folder with --fixtures.")

    def tools_for(self, spec: Spec, environ: Mapping[str, str]) -> http.HttpTool:
        """What calls the tools of this spec."""
        kept = Fixtures(self.folder)
        match self.tools:
            case "live":
                return http.HttpTool()
            case "record":
                return http.HttpTool(RecordingSource(Sender(), kept, secrets_of(spec, environ)))
            case "replay":
                return http.HttpTool(ReplayingSource(kept, secrets_of(spec, environ)))

    def model_for(self, spec: Spec, environ: Mapping[str, str], timeout_ms: int | None) -> ModelClient:
        """What asks the model of this spec. Raises ModelUnavailable, in replay too; but then no key is needed."""
        if self.models == "live":
            return models.client_for(spec, environ, timeout_ms)
        block, kept, secrets = spec.agent.model, Fixtures(self.folder), secrets_of(spec, environ)
        if self.models == "replay" and block is not None and block.api_key_name is not None:
            environ = {block.api_key_name: "not needed", **_set(environ)}
        client = models.client_for(spec, environ, timeout_ms)
        assert block is not None, "a client was made of it"
        asking = Asking(provider=block.provider, model=block.name)
        if self.models == "replay":
            return ReplayingModel(asking, kept, secrets)
        return RecordingModel(client, asking, kept, secrets)


LIVE = Recording()


def secrets_of(spec: Spec, environ: Mapping[str, str]) -> frozenset[str]:
    """The model's key, whatever any tool of the spec reads from the environment, and vars of secrets read there.

    A var is data otherwise, and a recording keeps data. All of these are hidden in every fixture: what one service
    answers, the next one is sent.
    """
    block = spec.agent.model
    names = {name for tool in spec.agent.tools for name in ENV_PLACEHOLDER.findall(tool.model_dump_json())}
    if block is not None and block.api_key_name is not None:
        names.add(block.api_key_name)
    return frozenset(text for name in names if (text := environ.get(name))) | secrets_in(spec, environ)


def _set(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environ.items() if text}
