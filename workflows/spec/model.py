"""A loaded spec: frozen, in the order written, unknown keys gone.

Only `load` makes these from a file, after every rule was checked; the classes themselves check types and nothing
else. Fields whose key is a Python word end in `_`. Times are milliseconds.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from workflows.spec.model_base import Json as Json
from workflows.spec.model_base import Number as Number
from workflows.spec.model_base import Part as Part
from workflows.spec.policy_model import Policy
from workflows.spec.trigger_model import Trigger


class VarDecl(Part):
    """`default` counts only when `has_default`; `items` is None unless written (a list then holds text)."""

    type: Literal["number", "string", "list"]
    items: Literal["string", "number"] | None = None
    default: Json = None
    has_default: bool = False
    description: str | None = None


class ModelBlock(Part):
    """`api_key` is the reference as written, `${NAME}`."""

    provider: Literal["anthropic", "openai", "ollama", "openrouter"]
    name: str
    api_key: str | None = None
    base_url: str | None = None
    timeout_ms: int | None = None

    @property
    def api_key_name(self) -> str | None:
        """The environment variable that holds the key."""
        return None if self.api_key is None else reference_name(self.api_key)


class Guardrails(Part):
    confidence_threshold: Number | None = None
    fallback_action: Literal["escalate_to_human"] | None = None


class KnowledgeSource(Part):
    type: Literal["pdf", "url", "text"]
    source: str


class ApprovalNotifier(Part):
    """`token` is a reference as written, `${NAME}`."""

    type: Literal["slack"] = "slack"
    token: str
    channel: str

    @property
    def token_name(self) -> str:
        return reference_name(self.token)


class Body(Part):
    """`kind` says which one of `json_`, `form` and `raw` holds the body."""

    kind: Literal["json", "form", "raw"]
    json_: Json = None
    form: dict[str, str] | None = None
    raw: str | None = None
    content_type: str | None = None


class Response(Part):
    mode: Literal["json", "text", "bytes"] = "json"


class FailureRule(Part):
    """`condition` says which of `exists`, `equals` and `matches` was written (`equals: null` is one)."""

    path: str
    condition: Literal["exists", "equals", "matches"]
    exists: bool | None = None
    equals: str | Number | bool | None = None
    matches: str | None = None
    message_path: str | None = None
    retryable: bool = False

    def as_json(self) -> dict[str, Json]:
        """The rule as a plain mapping with only the keys that were written, and `retryable`."""
        rule: dict[str, Json] = {"path": self.path, self.condition: getattr(self, self.condition)}
        if self.message_path is not None:
            rule["message_path"] = self.message_path
        return {**rule, "retryable": self.retryable}


class Pace(Part):
    """Requests a second to one host."""

    rps: Number


class Retry(Part):
    """`max` counts the attempts after the first."""

    max: int
    backoff: Literal["fixed", "exponential"] = "exponential"
    base_ms: int = 500
    max_delay_ms: int = 30_000


class ToolPart(Part):
    """`requires_approval` is None when the file does not say; `policy` holds for its approvals."""

    name: str
    requires_approval: bool | None = None
    extract: str | None = None
    policy: Policy = Policy()


class HttpTool(ToolPart):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: str
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    body: Body | None = None
    response: Response | None = None
    failure_when: tuple[FailureRule, ...] = ()
    pace: Pace | None = None
    retry: Retry | None = None

    @property
    def mode(self) -> Literal["json", "text", "bytes"]:
        """How the answer is read."""
        return "json" if self.response is None else self.response.mode


class SlackTool(ToolPart):
    """`token` is a reference as written, `${NAME}`."""

    token: str
    channel: str
    text: str


class GmailTool(ToolPart):
    """`token` is a reference as written, `${NAME}`; `body` is the text of the mail."""

    token: str
    to: str
    subject: str
    body: str


class ComponentTool(ToolPart):
    use: str
    op: str
    with_: dict[str, Json] = {}
    config: dict[str, str] = {}
    secrets: dict[str, str] = {}


Tool: TypeAlias = HttpTool | SlackTool | GmailTool | ComponentTool


class ActionStep(Part):
    """`output_schema` is the tree as written."""

    step: str
    action: str
    inputs: tuple[str, ...] = ()
    query: str | None = None
    confidence_gate: bool = False
    output_schema: dict[str, Json] | None = None
    instructions: str | None = None
    model: str | None = None
    temperature: Number | None = None


class ConditionStep(Part):
    """`policy` holds for a branch that asks a person."""

    step: str
    if_: str
    then: str
    else_: str
    policy: Policy = Policy()


class ToolStep(Part):
    step: str
    tool: str


class ApprovalStep(Part):
    step: str
    message: str | None = None
    policy: Policy = Policy()


class OnceStep(Part):
    """Claims a key for `ttl` seconds, or goes another way when it is taken (1.2)."""

    step: str
    key: str
    ttl: int
    on_repeat: Literal["stop", "continue"] = "stop"
    release_on_failure: bool = True


class OpenStep(Part):
    """Records an incident unless one is open (1.2). `value` is any tree of templates."""

    step: str
    key: str
    value: Json = None
    ttl: int | None = None


class CloseStep(Part):
    """Takes the open incident away (1.2)."""

    step: str
    key: str


Step: TypeAlias = ActionStep | ConditionStep | ToolStep | ApprovalStep | OnceStep | OpenStep | CloseStep


class Agent(Part):
    """`policy` holds where no nearer place says otherwise, so for the confidence guardrail."""

    id: str
    name: str
    role: str
    goal: str
    model: ModelBlock | None = None
    tools: tuple[Tool, ...] = ()
    guardrails: Guardrails | None = None
    knowledge_base: tuple[KnowledgeSource, ...] = ()
    trigger: Trigger | None = None
    approval_notifier: ApprovalNotifier | None = None
    policy: Policy = Policy()
    workflow: tuple[Step, ...]

    def tool(self, name: str) -> Tool | None:
        """The first tool of that name, the one that counts."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def policies(self) -> tuple[Policy, ...]:
        """Every policy under which a gate may open, the defaults among them."""
        gates = (step.policy for step in self.workflow if isinstance(step, ApprovalStep | ConditionStep))
        return (self.policy, *(tool.policy for tool in self.tools), *gates)


class Spec(Part):
    version: str
    vars: dict[str, VarDecl] = {}
    agent: Agent

    @property
    def is_1_0(self) -> bool:
        return self.version == "1.0"

    @property
    def is_1_2(self) -> bool:
        return self.version == "1.2"


def reference_name(reference: str) -> str:
    """NAME of the reference `${NAME}`."""
    return reference[2:-1]
