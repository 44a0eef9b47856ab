"""Drives the generator with scripted outcomes: effects are answered from tables, events and effects kept in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workflows.engine import machine
from workflows.engine.effects import (
    AskModel,
    AskPerson,
    CallTool,
    ClaimKey,
    CloseIncident,
    Decision,
    Effect,
    Evaluate,
    Evaluated,
    ExpressionFailed,
    Fingerprint,
    HttpCall,
    IsStillValid,
    KeyEffect,
    Matched,
    MatchPatterns,
    OpenIncident,
    Pause,
    ReadEnvironment,
    Recorded,
)
from workflows.engine.events import Completed, EngineEvent, Expired, Failed, Rejected, StepCompleted, StepStarted
from workflows.engine.situation import Situation
from workflows.spec.model import (
    ActionStep,
    Agent,
    ApprovalStep,
    ConditionStep,
    Guardrails,
    HttpTool,
    Spec,
    Step,
    Tool,
    ToolStep,
    VarDecl,
)

LETTERS = {
    StepStarted: "S",
    StepCompleted: "C",
    Rejected: "R",
    Failed: "F",
    Expired: "E",
    Completed: "completed",
    AskPerson: "A",
}


@dataclass(kw_only=True)
class Script:
    """What the world answers. Models and tools answer in order, per step and per tool name.

    `decisions` answer the pauses, in order: True, False, (approved, reason), or a whole Decision. A pause without one
    is left open.
    `recorded` are keys for requests that nobody waits for; they come first. `valid` says whether an approval with an
    end holds, in order; behind them it does. `keys` are what the store answers, in order.
    """

    expressions: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tools: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    decisions: Sequence[Any] = ()
    recorded: Sequence[str | None] = ()
    valid: Sequence[bool] = ()
    keys: Sequence[Any] = ()


@dataclass(kw_only=True)
class Played:
    """What happened. `line` is the story in letters: `S C A`, with `completed` at the end."""

    line: str
    events: list[EngineEvent]
    effects: list[Any]
    pauses: list[Pause]

    @property
    def last(self) -> Any:
        return self.events[-1]

    @property
    def calls(self) -> list[HttpCall]:
        return [effect.call for effect in self.effects if isinstance(effect, CallTool)]

    @property
    def keys(self) -> list[KeyEffect]:
        return [effect for effect in self.effects if isinstance(effect, KeyEffect)]

    @property
    def questions(self) -> list[AskModel]:
        return [effect for effect in self.effects if isinstance(effect, AskModel)]


def play(spec: Spec, situation: Situation | None = None, script: Script | None = None) -> Played:
    """Run to the end, or to a pause that the script does not answer."""
    script = script or Script()
    answers = _Answers(script)
    letters: list[str] = []
    played = Played(line="", events=[], effects=[], pauses=[])
    generator = machine.run(spec, situation or Situation(input="go"))
    answer: Any = None
    while True:
        try:
            item = generator.send(answer)
        except StopIteration:
            break
        answer = None
        if type(item) in LETTERS:
            letters.append(LETTERS[type(item)])
        if isinstance(item, EngineEvent):
            played.events.append(item)
            continue
        played.effects.append(item)
        if isinstance(item, AskPerson):
            played.pauses.append(item.pause)
            if answers.undecided():
                generator.close()
                break
        answer = answers.to(item)
    played.line = " ".join(letters)
    return played


class _Answers:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._models = {step: iter(answers) for step, answers in script.models.items()}
        self._tools = {tool: iter(answers) for tool, answers in script.tools.items()}
        self._decisions = list(script.decisions)
        self._recorded = list(script.recorded)
        self._valid = list(script.valid)
        self._keys = list(script.keys)

    def undecided(self) -> bool:
        return not self._decisions and not self._recorded

    def to(self, effect: Effect) -> Any:
        match effect:
            case Evaluate():
                return self._evaluated(effect)
            case MatchPatterns():
                return Matched(found=tuple(re.search(pattern, text) is not None for pattern, text in effect.pairs))
            case ReadEnvironment():
                return {name: self._script.env.get(name) for name in effect.names}
            case Fingerprint():
                return {name: f"mark of {len(self._script.env.get(name, ''))}" for name in effect.names}
            case IsStillValid():
                return self._valid.pop(0) if self._valid else True
            case ClaimKey() | OpenIncident() | CloseIncident():
                return self._keys.pop(0)
            case AskModel():
                return next(self._models[effect.step])
            case CallTool():
                return next(self._tools[effect.tool])
            case AskPerson() if self._recorded:
                return Recorded(key=self._recorded.pop(0))
            case AskPerson():
                answer = self._decisions.pop(0)
                return answer if isinstance(answer, Decision) else decided(effect.pause, answer)

    def _evaluated(self, effect: Evaluate) -> Evaluated | ExpressionFailed:
        values = [self._script.expressions[source.strip()] for source in effect.sources]
        failed = next((value for value in values if isinstance(value, ExpressionFailed)), None)
        return failed or Evaluated(values=tuple(values))


def decided(pause: Pause, answer: bool | tuple[bool, str], **changed: Any) -> Decision:
    """A decision given for this pause, or for something that differs in the fields named."""
    approved, reason = answer if isinstance(answer, tuple) else (answer, None)
    given: dict[str, Any] = {
        "step_index": pause.step_index,
        "kind": pause.kind,
        "tool": pause.tool,
        "digest": pause.digest,
    }
    return Decision(approved=approved, reason=reason, **{**given, **changed})


# Specs -------------------------------------------------------------------------------------------------------


def a_spec(
    *steps: Step,
    version: str = "1.1",
    tools: Sequence[Tool] = (),
    guardrails: Guardrails | None = None,
    vars: Mapping[str, VarDecl] | None = None,
) -> Spec:
    agent = Agent(
        id="clerk",
        name="Clerk",
        role="Clerk",
        goal="Handle it.",
        tools=tuple(tools),
        guardrails=guardrails,
        workflow=steps,
    )
    return Spec(version=version, vars=dict(vars or {}), agent=agent)


def a_tool(name: str = "send", **changed: Any) -> HttpTool:
    return HttpTool(**{"name": name, "method": "POST", "url": "http://tools.test/send", **changed})


def an_action(step: str = "decide", **changed: Any) -> ActionStep:
    return ActionStep(step=step, action="judge", **changed)


def a_condition(
    then: str, *, step: str = "route", if_: str = "trigger.ok", else_: str = "request_human_approval"
) -> Step:
    return ConditionStep(step=step, if_=if_, then=then, else_=else_)


def a_tool_step(step: str = "go", tool: str = "send") -> ToolStep:
    return ToolStep(step=step, tool=tool)


def an_approval(step: str = "review", message: str | None = None) -> ApprovalStep:
    return ApprovalStep(step=step, message=message)
