"""One case as one run in memory, with the adapters of the product and its decisions in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.conformance.cases import HEAD, Case, known
from tests.conformance.expectations import Outcome, check
from tests.conformance.matching import Unmet
from tests.conformance.stage import Stage, TellingModel
from workflows.adapters.environment import Environment
from workflows.advance import world_for
from workflows.engine.effects import Decision, Pause
from workflows.engine.events import AwaitingApproval, Event
from workflows.engine.situation import Situation, Trigger
from workflows.engine.state import event_json
from workflows.engine.values import NOTHING
from workflows.memory_run import State, decision_for, run_in_memory
from workflows.pacing import MemoryPacer
from workflows.recording import LIVE, Recording
from workflows.spec import build, reader
from workflows.spec.load import load
from workflows.spec.model import Spec
from workflows.world import World

INPUTS: Final = HEAD | {"spec", "input", "trigger", "vars", "env", "model", "http", "decisions", "engine_only", "clock"}
_APPROVED: Final = {"approve": True, "reject": False}


def play(case: Case) -> Outcome:
    """Run the case and check it."""
    known(case["id"], case, INPUTS)
    with Stage(case) as stage:
        outcome = run(stage, Decisions(stage.case.get("decisions") or ()))
        check(stage.case["expect"], outcome)
    return outcome


def spec_of(text: str, *, engine_only: bool = False) -> Spec:
    """The loaded spec. Where a file may be refused that the engine must cope with all the same, the parsed one."""
    loaded = load(text)
    if loaded.spec is not None:
        return loaded.spec
    document = reader.read(text)
    if not engine_only or document is None or not isinstance(document.tree, dict):
        raise Unmet("the spec does not load: " + "; ".join(str(error) for error in loaded.errors))
    return build.spec(document.tree)


def situation_of(case: Case) -> Situation:
    """What the run starts from."""
    trigger = case.get("trigger") or {}
    known("trigger", trigger, {"headers", "body"})
    return Situation(
        input=case["input"],
        trigger=Trigger(headers=trigger.get("headers", {}), body=trigger.get("body", NOTHING)),
        overrides=case.get("vars") or {},
    )


def world_of(stage: Stage, spec: Spec, recording: Recording = LIVE) -> World:
    """The product's own world, with the case's environment and nothing besides."""
    world = world_for(spec, recording=recording)
    environment = Environment(stage.case.get("env") or {})
    if stage.clock is not None:
        world = replace(world, clock=stage.clock, pacer=MemoryPacer(stage.clock.moment))
    return replace(
        world, environment=environment, model=TellingModel(stage, world.model) if stage.tells else world.model
    )


class Decisions:
    """Answers pause after pause; the pause behind the last answer stays open."""

    def __init__(self, given: Sequence[Mapping[str, Any]]) -> None:
        self.rest = list(given)

    def __call__(self, pause: Pause) -> Decision | None:
        if not self.rest:
            return None
        one = self.rest.pop(0)
        known("decisions", one, {"decision", "reason"})
        return decision_for(pause, approved=_APPROVED[one["decision"]], reason=one.get("reason"), by="case")


def run(stage: Stage, decisions: Decisions, recording: Recording = LIVE) -> Outcome:
    """The run and what was seen of it."""
    spec = spec_of(stage.spec, engine_only=stage.case.get("engine_only", False))
    events: list[dict[str, Any]] = []
    pauses: list[dict[str, Any]] = []
    requests_at_pause: list[int] = []

    def listen(event: Event, state: State) -> None:
        events.append(event_json(event))
        if isinstance(event, AwaitingApproval):
            pauses.append(state["pendingApproval"])
            requests_at_pause.append(len(stage.tools.requests))

    world = world_of(stage, spec, recording)
    state = run_in_memory(spec, situation_of(stage.case), world, ask=decisions, listener=listen)
    stage.surprises()
    if decisions.rest:
        raise Unmet(f"the run ended without asking for {len(decisions.rest)} of its decisions")
    return Outcome(
        state=state,
        events=tuple(events),
        pauses=tuple(pauses),
        requests=tuple(stage.tools.requests),
        requests_at_pause=tuple(requests_at_pause),
        questions=tuple(stage.models.requests),
        sleeps_ms=tuple(stage.clock.sleeps_ms) if stage.clock is not None else None,
    )
