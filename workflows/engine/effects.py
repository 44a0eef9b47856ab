"""What the engine asks for. It yields one of these and is sent the outcome named beside it.

The engine does no I/O: it knows no clock, network, database or environment. The driver (floor 2) performs effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from workflows.engine.values import Json, MaybeJson, Outputs
from workflows.spec.policy_model import Policy

Phase: TypeAlias = Literal["before", "after"]
PauseKind: TypeAlias = Literal["tool", "approval", "guardrail"]


# Expressions and patterns ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Evaluate JSONata sources one after the other under one shared limit. Outcome: Evaluated | ExpressionFailed.

    `scope` is the root of each: the names that a run knows, or what a poll reads, which is anything but null.
    """

    sources: tuple[str, ...]
    scope: Json


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """One value a source, NOTHING where the source selects nothing."""

    values: tuple[MaybeJson, ...]


@dataclass(frozen=True, kw_only=True)
class ExpressionFailed:
    """`index` says which source; `position` is JSONata's character offset, when known."""

    index: int
    reason: str
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class MatchPatterns:
    """Search ECMAScript patterns in texts, guarded like expressions. Outcome: Matched | ExpressionFailed."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Whether each pair's pattern occurs in its text."""

    found: tuple[bool, ...]


# Environment -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadEnvironment:
    """Outcome: a mapping from each name to its text, None where it is unset or empty."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Outcome: a mapping from each name to a keyed HMAC of its present value (hex), `unset` where there is none.

    For the digest of a tool's url (design 6): a switched host is noticed, the value is not learned.
    """

    names: tuple[str, ...]


# Model -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AskModel:
    """One model call. Outcome: ModelText | ModelGate | ModelObject | ModelMalformed | ModelFailed.

    `want` says which of the first three; `structure` is the reduced JSON Schema for `object` (engine semantics 6.1).
    `model` and `temperature` are given only when the step sets them. Under `granted` the outcome may be WentStale.
    """

    step: str
    index: int
    system: str
    prompt: str
    want: Literal["text", "gate", "object"]
    structure: Json | None = None
    model: str | None = None
    temperature: float | None = None
    granted: Granted | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class ModelText:
    text: str


@dataclass(frozen=True, kw_only=True)
class ModelGate:
    """`result` is whatever the model gave; `confidence` None when the client returned none."""

    result: Json
    confidence: float | None


@dataclass(frozen=True, kw_only=True)
class ModelObject:
    """The answer to judge; NOTHING when there was none."""

    value: MaybeJson


@dataclass(frozen=True, kw_only=True)
class ModelMalformed:
    """The client says that the answer broke the requested structure; it counts as an answer with these problems."""

    problems: tuple[str, ...]
    raw: MaybeJson


@dataclass(frozen=True, kw_only=True)
class ModelFailed:
    error: str


# Tools -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HttpCall:
    """A request with every reference resolved; it holds secrets and must never be stored, logged or shown.

    `approved` is true when a person (or rule) said yes to it: then no redirect is followed.
    """

    tool: str
    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    mode: Literal["json", "text", "bytes"] = "json"
    extract: str | None = None
    failure_when: tuple[Json, ...] = ()
    retry: Json | None = None
    pace: Json | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    approved: bool = False
    #: A service whose base address is the operator's to set; `url` is then written for the service's own.
    service: Literal["slack", "gmail"] | None = None


@dataclass(frozen=True, kw_only=True)
class CallTool:
    """Outcome: ToolOutput | ToolFailed, and under `granted` also WentStale.

    `step` of what a gate calls is `<step>.check`, `<step>.on_decision` or `<step>.on_expire` (1.2).
    """

    step: str
    index: int
    tool: str
    call: HttpCall = field(repr=False)
    granted: Granted | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    value: MaybeJson


@dataclass(frozen=True, kw_only=True)
class ToolFailed:
    """`error` is the whole message, redacted. `failure` is the class of engine semantics 14.5.

    `retry_after` is the header as it came with a failing status.
    """

    error: str
    failure: Literal["rate_limit", "auth", "timeout", "http", "failure_when", "build"] = "http"
    retryable: bool = False
    retry_after: str | None = None


# People ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A person's or a rule's answer, with what it was given for (`step_index` to `digest`).

    `key`, `by`, `at` (RFC 3339), `surface` and `action` (what was shown) are for the reader; the engine looks only at
    the rest; `phase` is that of the gate. `answers` are those of the policy's form. `edits` maps editable paths to the
    values that were approved in place of what was shown first; `digest` is then that of the edited action. `goes_on`
    marks a rejection after which the run is entered again: `on_reject: continue`, or a tool called on it (1.2). Until
    `valid_until` (RFC 3339) the first call that leaves the process may start (1.2). `on_expire` marks what is no
    answer: nobody gave one in time, and this tool is called before the run ends `expired` (1.2).
    """

    approved: bool
    reason: str | None
    step_index: int
    kind: PauseKind
    tool: str | None
    digest: str
    key: str | None = None
    by: str | None = None
    at: str | None = None
    valid_until: str | None = None
    surface: str | None = None
    action: Json | None = None
    reopens: int = 0
    answers: Json | None = None
    edits: Mapping[str, Json] = field(default_factory=dict)
    goes_on: bool = False
    phase: Phase = "before"
    on_expire: str | None = None


@dataclass(frozen=True, kw_only=True)
class Granted:
    """An approval with an end (`valid_for`), given at `step`, under which nothing has left the process yet."""

    decision: Decision
    step: str


@dataclass(frozen=True, kw_only=True)
class IsStillValid:
    """Whether something may still be called under this approval. Outcome: True or False.

    True also after its end when a call under it was begun in time: what was begun is finished.
    """

    granted: Granted


@dataclass(frozen=True, kw_only=True)
class WentStale:
    """Outcome of AskModel or CallTool in place of its own: the approval in `granted` has ended, nothing was called."""


@dataclass(frozen=True, kw_only=True)
class RuleVerdict:
    """What the policy's own rules said when the gate opened (1.2, `auto`). `rule` names the one that decided.

    `approved` None asks a person; `reason` is then shown as advice.
    """

    approved: bool | None
    rule: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """The engine cannot go on without a person.

    `action` is what the decider is shown: for kind `tool` the rendered action with `${NAME}` kept, for an approval
    step None (the message is `reason`), for the guardrail the step's output. `digest` is `1:<hex>` (design 6).
    `differs_from` is set when a decision was given for something else than what would run now: the decision that no
    longer fits, with `what_differs` in words (design 3.3); `went_stale` where it only came to its end. `policy` holds
    for this gate; `verdict` is what its rules said, None where it has none.
    """

    step_index: int
    step: str
    phase: Phase
    kind: PauseKind
    reason: str
    tool: str | None
    action: Json | None
    digest: str
    outputs: Outputs
    differs_from: Decision | None = None
    what_differs: str = ""
    went_stale: bool = False
    policy: Policy = field(default_factory=Policy)
    verdict: RuleVerdict | None = None
    #: Keyed marks of the present values that the url refers to; they are part of the digest.
    url_marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AskPerson:
    """Outcome: a Decision, when one is there at once (a prompt, a rule). Otherwise the driver stores the pause and
    closes the generator; the run goes on in a fresh generator with `Situation.decision`.

    A pause whose policy says `mode: record` does not wait: its outcome is Recorded.
    """

    pause: Pause


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The decision is asked for beside the run, which goes on. `key` is None where nothing is stored."""

    key: str | None


# Keys of the store (1.2) -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ClaimKey:
    """Take a key for `ttl` seconds. Outcome: KeyClaimed | KeyRefused.

    `release` says whether it is given back when the chain fails and called nobody but by GET.
    """

    step: str
    index: int
    key: str
    ttl: int
    release: bool = True


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """Record an incident, for `ttl` seconds at most, unless one is open. Outcome: IncidentOpened | KeyRefused."""

    step: str
    index: int
    key: str
    value: Json
    ttl: int | None = None


@dataclass(frozen=True, kw_only=True)
class CloseIncident:
    """Take the open incident away. Outcome: IncidentClosed | KeyRefused."""

    step: str
    index: int
    key: str


KeyEffect: TypeAlias = ClaimKey | OpenIncident | CloseIncident


@dataclass(frozen=True, kw_only=True)
class KeyClaimed:
    """`holder` is the root of the chain that has the key; None when it is this chain's, now or already."""

    holder: str | None = None


@dataclass(frozen=True, kw_only=True)
class IncidentOpened:
    """The incident that is open now: `{key, value, openedAt, runId}`. `opened` when it is this chain's."""

    opened: bool
    incident: dict[str, Json]


@dataclass(frozen=True, kw_only=True)
class IncidentClosed:
    """The incident that was open, None when there was none."""

    incident: dict[str, Json] | None


@dataclass(frozen=True, kw_only=True)
class KeyRefused:
    """The store takes no such key or value; nothing was written."""

    reason: str


KeyKept: TypeAlias = KeyClaimed | IncidentOpened | IncidentClosed
KeyOutcome: TypeAlias = KeyKept | KeyRefused

Effect: TypeAlias = (
    Evaluate
    | MatchPatterns
    | ReadEnvironment
    | Fingerprint
    | AskModel
    | CallTool
    | AskPerson
    | IsStillValid
    | KeyEffect
)
#: Effects whose performance leaves the process: the driver commits an attempt row before each.
OUTSIDE: tuple[type, ...] = (AskModel, CallTool)
