"""What a case is played on: a tool server and a model server on loopback, scripted by the case."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from django.test import override_settings

from tests.conformance.cases import Case, checked_scripts, placed, with_model_at
from tests.conformance.matching import CaseError, Unmet
from tests.fakes_clock import FakeClock
from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from workflows.adapters.models import ModelAnswer, ModelClient
from workflows.engine.effects import AskModel, ModelFailed, ModelMalformed


class Stage:
    """The servers of one case, and the case with their addresses in it: `spec` is its text."""

    def __init__(self, case: Case) -> None:
        checked_scripts(case)
        if case.get("clock", "fake") != "fake":
            raise CaseError(f"clock: there is none that is called {case['clock']}")
        self.clock = FakeClock() if "clock" in case else None
        self.tools = FakeTools(keep_alive=False)
        self.models = FakeModels(case.get("model"), keep_alive=False)
        self.case: Case = placed(case, self.tools.url)
        self.tools.script = dict(self.case.get("http") or {})
        self._services = override_settings(
            KAMPONG_SLACK_API_URL=self.tools.mounted("https://slack.com") + "/api",
            KAMPONG_GMAIL_API_URL=self.tools.mounted("https://gmail.googleapis.com"),
        )
        self.spec = with_model_at(self.case["spec"], self.models.url)

    @property
    def tells(self) -> bool:
        """Whether the case scripts what the client reports, rather than what the provider answers."""
        return any(_told(answer) for step in self.models.answers for answer in self._answers(step))

    def _answers(self, step: str) -> list[Any]:
        answers = self.models.answers.get(step, [])
        return answers if isinstance(answers, list) else [answers]

    def reported(self, step: str) -> ModelAnswer | None:
        """What the client reports of the call just made for this step, where the case says so."""
        answers = self._answers(step)
        # A single answer is given to every call, and a list has one for each.
        return _told(answers[min(self.models.count(step), len(answers)) - 1]) if answers else None

    def surprises(self) -> None:
        """Unmet when a server was asked something that the case has no answer for."""
        problems = self.tools.failures + self.models.failures
        if problems:
            raise Unmet("; ".join(problems))

    def __enter__(self) -> Self:
        self._services.enable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._services.disable()
        self.tools.close()
        self.models.close()


def _told(answer: Any) -> ModelAnswer | None:
    if isinstance(answer, dict) and "malformed" in answer:
        given = answer["malformed"]
        return ModelMalformed(problems=tuple(given["problems"]), raw=given["raw"])
    if isinstance(answer, dict) and "error" in answer:
        return ModelFailed(error=answer["error"])
    return None


class TellingModel:
    """A model client that reports a broken structure, or a failed call, in exactly the words of the case.

    Such cases are about what the engine does with the report, and no provider makes our own client say just these
    words: it finds its own problems in a structure, and says which provider failed and how. The question goes over
    the wire all the same, and every other answer is the client's own.
    """

    def __init__(self, stage: Stage, client: ModelClient) -> None:
        self._stage = stage
        self._client = client

    def ask(self, effect: AskModel) -> ModelAnswer:
        """The client's answer, or what the case says in its place."""
        answer = self._client.ask(effect)
        return self._stage.reported(effect.step) or answer
