"""Makes the typed spec from a tree that passed every rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workflows.spec import model, policy_build
from workflows.spec.model import Json
from workflows.spec.policy_shapes import policy_of

_Tree = dict[str, Any]


def spec(tree: _Tree) -> model.Spec:
    return model.Spec(
        version=tree["version"],
        vars={name: _var(declaration) for name, declaration in tree.get("vars", {}).items()},
        agent=_agent(tree["agent"]),
    )


def _var(declaration: _Tree) -> model.VarDecl:
    return model.VarDecl(**declaration, has_default="default" in declaration)


def _agent(tree: _Tree) -> model.Agent:
    defaults = tree.get("approvals", {})
    return model.Agent(
        **{key: tree[key] for key in ("id", "name", "role", "goal")},
        model=_optional(tree, "model", model.ModelBlock),
        tools=tuple(_tool(tool, defaults) for tool in tree.get("tools", [])),
        guardrails=_optional(tree, "guardrails", model.Guardrails),
        knowledge_base=tuple(model.KnowledgeSource(**source) for source in tree.get("knowledge_base", [])),
        trigger=policy_build.trigger(tree["trigger"]) if "trigger" in tree else None,
        approval_notifier=_optional(tree, "approval_notifier", model.ApprovalNotifier),
        policy=policy_build.policy({}, defaults),
        workflow=tuple(_step(step, defaults) for step in tree["workflow"]),
    )


def _tool(tree: _Tree, defaults: _Tree) -> model.Tool:
    fields = {key: value for key, value in tree.items() if key not in ("action", "approval")}
    fields["policy"] = policy_build.policy(defaults, tree.get("approval", {}))
    if "approval" in tree:
        fields["requires_approval"] = True
    match tree["action"]:
        case "http_request":
            return _http(fields)
        case "slack_post_message":
            return model.SlackTool(**fields)
        case "gmail_send":
            return model.GmailTool(**fields)
        case _:
            return model.ComponentTool(**_renamed(fields, "with"))


def _http(fields: _Tree) -> model.HttpTool:
    return model.HttpTool(
        **{
            **fields,
            "body": _optional(fields, "body", _body),
            "response": _optional(fields, "response", model.Response),
            "failure_when": tuple(_failure_rule(**rule) for rule in fields.get("failure_when", [])),
            "pace": _optional(fields, "pace", model.Pace),
            "retry": _optional(fields, "retry", model.Retry),
        }
    )


def _body(**body: Json) -> model.Body:
    fields: _Tree = {"kind": next(key for key in body if key != "content_type"), **_renamed(body, "json")}
    return model.Body(**fields)


def _failure_rule(**rule: Json) -> model.FailureRule:
    condition = next(key for key in ("exists", "equals", "matches") if key in rule)
    return model.FailureRule(condition=condition, **rule)


def _step(tree: _Tree, defaults: _Tree) -> model.Step:
    own = policy_of(tree)
    fields = {key: value for key, value in tree.items() if key != "type" and key not in own}
    if "action" in fields:
        return model.ActionStep(**{**fields, "inputs": tuple(fields.get("inputs", ()))})
    match tree["type"]:
        case "condition":
            return model.ConditionStep(**_renamed(fields, "if", "else"), policy=policy_build.policy(defaults, own))
        case "tool":
            return model.ToolStep(**fields)
        case "approval":
            return model.ApprovalStep(**fields, policy=policy_build.policy(defaults, own))
        case "once":
            return model.OnceStep(**policy_build.in_seconds(fields, "ttl"))
        case "open":
            return model.OpenStep(**policy_build.in_seconds(fields, "ttl"))
        case _:
            return model.CloseStep(**fields)


def _optional(tree: _Tree, key: str, make: Callable[..., Any]) -> Any:
    return make(**tree[key]) if key in tree else None


def _renamed(tree: _Tree, *keys: str) -> _Tree:
    """Keys that are words of Python, or names of pydantic, get a trailing underscore."""
    return {f"{key}_" if key in keys else key: value for key, value in tree.items()}
