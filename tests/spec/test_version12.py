"""Version 1.2: everything of 1.1, closed, with policies, triggers and store steps (spec 1.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.specs import accepted, errors, only_error, spec
from workflows.spec.durations import seconds
from workflows.spec.model import ApprovalStep, ConditionStep, OnceStep, Spec
from workflows.spec.policy_model import Approvers, EmailChannel, Escalation, SlackChannel
from workflows.spec.trigger_model import PollTrigger, ScheduleTrigger, WebhookTrigger

PAY = "    - {name: pay, action: http_request, method: POST, url: 'https://x.test/', requires_approval: true}\n"
TELL = "    - {name: tell, action: http_request, method: POST, url: 'https://x.test/{{ input }}'}\n"
GET = "    - {name: a, action: http_request, method: GET, url: x"
SLACK = "    - {name: a, action: slack_post_message, token: '${T}', channel: c, text: t"


def v12(rest: str) -> str:
    return spec(rest, "1.2")


def approval(keys: str) -> str:
    return v12(
        f"  tools:\n{PAY}{TELL}  workflow:\n    - {{step: read, action: summarise}}\n"
        f"    - {{step: sign, type: approval, {keys}}}\n"
    )


def loaded(text: str) -> Spec:
    found = accepted(text).spec
    assert found is not None
    return found


def sign(text: str) -> Any:
    step = loaded(text).agent.workflow[-1]
    assert isinstance(step, ApprovalStep | ConditionStep)
    return step.policy


# Closed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "where", "words"),
    [
        ("  goals: x\n", "agent", "goals (did you mean goal?)"),
        ("  guardrails: {confidence_treshold: 1}\n", "agent.guardrails", "confidence_treshold (did you mean"),
        (f"  tools:\n{GET}, requires_aproval: true}}\n", "agent.tools.0", "requires_approval?"),
        (f"  tools:\n{SLACK}, txt: t}}\n", "agent.tools.0", "text?"),
        ("  workflow:\n    - {step: a, type: approval, mesage: hi}\n", "agent.workflow.0", "message?"),
        ("  workflow:\n    - {step: a, action: b, querry: hi}\n", "agent.workflow.0", "query?"),
        ("  trigger: {type: webhook, path: /x}\n", "agent.trigger", "path"),
        ("  model: {provider: ollama, name: m, temprature: 1}\n", "agent.model", "temprature"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused_with_the_nearest_one(rest: str, where: str, words: str) -> None:
    error = only_error(v12(rest))

    assert error.where == where
    assert "unknown key" in error.message
    assert words in error.message


def test_what_1_1_accepts_loads_here_and_the_new_keys_mean_nothing_there() -> None:
    accepted(v12("  workflow:\n    - {step: a, type: action, action: b}\n"))
    old = accepted(approval("quorum: 2, form: 5").replace('"1.2"', '"1.1"'))
    assert [note.code for note in old.notes]


def test_messages_about_the_version_name_all_three() -> None:
    message = only_error(spec("", "1.3")).message

    assert all(f'"{version}"' in message for version in ("1.0", "1.1", "1.2"))


@pytest.mark.parametrize("name", ["trigger", "input", "vars", "decision", "action", "output", "cursor"])
def test_reserved_names_cannot_be_steps(name: str) -> None:
    assert "reserved" in only_error(v12(f"  workflow:\n    - {{step: {name}, action: b}}\n")).message


# Durations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "length"), [("30s", 30), ("15m", 900), ("4h", 14400), ("2d", 172800), ("1w", 604800), ("007s", 7)]
)
def test_durations(text: str, length: int) -> None:
    assert seconds(text) == length
    assert sign(approval(f"expires_in: {text}")).expires_in == length


@pytest.mark.parametrize(
    "text", ["5", "5.0", "'5'", "5M", "1h30m", "0s", "-1h", "' 1h'", "1 h", "99999999w", "h", "''", "true", "٣h"]
)
def test_a_bare_number_and_anything_else_is_no_duration(text: str) -> None:
    error = only_error(approval(f"expires_in: {text}"))

    assert error.where == "agent.workflow.1.expires_in"
    assert "duration" in error.message or "unit" in error.message


# Policies ----------------------------------------------------------------------------------------------------


def test_a_policy_without_a_word_is_the_permission_once() -> None:
    policy = sign(approval("message: hi"))

    assert policy.approvers == Approvers()
    assert (policy.on_expire, policy.on_reject, policy.mode, policy.digest) == ("expire", "stop", "gate", "optional")
    assert policy.expires_in is policy.recall is policy.notify is None


def test_the_nearer_place_wins_key_by_key_and_who_is_one_unit() -> None:
    text = v12(
        "  approvals:\n"
        "    approvers: {users: [ana], groups: [finance], quorum: 2, four_eyes: true}\n"
        "    require_reason: always\n    escalate: {after: 1h, groups: [heads]}\n"
        "    notify: [{type: slack, token: '${T}', channel: '#pay'}, {type: email, to: [a@b.test]}]\n"
        "  workflow:\n"
        "    - {step: one, type: approval}\n"
        "    - {step: two, type: approval, approvers: {groups: [legal]}, require_reason: never}\n"
        "    - {step: three, type: condition, if: 'true', then: request_human_approval, else: request_human_approval,"
        " approvers: {quorum: 1}}\n"
    )
    agent = loaded(text).agent
    one, two, three = (step.policy for step in agent.workflow if isinstance(step, ApprovalStep | ConditionStep))

    assert one == agent.policy
    assert one.approvers == Approvers(users=("ana",), groups=("finance",), quorum=2, four_eyes=True)
    assert two.approvers == Approvers(users=None, groups=("legal",), quorum=2, four_eyes=True)
    assert three.approvers == Approvers(users=("ana",), groups=("finance",), quorum=1, four_eyes=True)
    assert (one.require_reason, two.require_reason) == ("always", "never")
    assert one.escalate == Escalation(after=3600, groups=("heads",))
    assert one.notify == (SlackChannel(token="${T}", channel="#pay"), EmailChannel(to=("a@b.test",)))


def test_a_tool_with_an_approval_needs_one() -> None:
    policy = "approval: {on_expire: reject}"
    agent = loaded(v12(f"  tools:\n{TELL.replace('}}', '}}', 1).rstrip()[:-1]}, {policy}}}\n")).agent

    assert agent.tools[0].requires_approval is True
    assert agent.tools[0].policy.on_expire == "reject"
    refused = only_error(v12(f"  tools:\n{TELL.rstrip()[:-1]}, {policy}, requires_approval: false}}\n"))
    assert refused.where == "agent.tools.0.requires_approval"


def test_calls_of_tools_are_names_of_tools() -> None:
    policy = sign(
        approval(
            "on_expire: execute_tool(tell), on_decision: {approved: execute_tool(tell)}, "
            "auto: {check: execute_tool(tell)}"
        )
    )

    assert (policy.on_expire, policy.on_expire_tool) == ("execute_tool", "tell")
    assert policy.on_decision.approved == policy.auto.check == "tell"


@pytest.mark.parametrize(
    ("keys", "where", "words"),
    [
        ("approvers: {users: []}", "approvers.users", "at least one"),
        ("approvers: {groups: ['']}", "approvers.groups.0", "empty"),
        ("approvers: {quorum: 0}", "approvers.quorum", "at least 1"),
        ("approvers: {quorum: 1.5}", "approvers.quorum", "whole"),
        ("approvers: {four_eyes: 'yes'}", "approvers.four_eyes", "boolean"),
        ("require_reason: maybe", "require_reason", "never"),
        ("on_expire: explode", "on_expire", "expire"),
        ("on_expire: execute_tool(gone)", "on_expire", "no tool"),
        ("on_expire: execute_tool(pay)", "on_expire", "needs an approval"),
        ("on_decision: {approved: execute_tool(pay)}", "on_decision.approved", "needs an approval"),
        ("on_decision: {approved: tell}", "on_decision.approved", "execute_tool"),
        ("auto: {check: execute_tool(pay)}", "auto.check", "needs an approval"),
        ("auto: {approve_if: 'nobody.x'}", "auto.approve_if", "nobody"),
        ("auto: {approve_if: '1 +'}", "auto.approve_if", "JSONata"),
        ("auto: {approve_if: '$now() > 1'}", "auto.approve_if", "$now"),
        ("recall: 2h, valid_for: 1h", "valid_for", "recall"),
        ("expires_in: 1h, remind_every: 1h", "expires_in", "reminded"),
        ("expires_in: 1h, escalate: {after: 2h, groups: [x]}", "expires_in", "escalated"),
        ("escalate: {after: 2h}", "escalate.groups", "required"),
        ("editable: ['a b']", "editable.0", "path"),
        ("editable: [later.x]", "editable.0", "later"),
        ("editable: [sign.x]", "editable.0", "sign"),
        ("editable: [action.body]", "editable.0", "nothing is called"),
        ("form: {type: string}", "form.type", "object"),
        ("form: {type: object, properties: {a: {type: string, default: 5}}}", "form.properties.a.default", "string"),
        ("notify: [{type: pigeon}]", "notify.0.type", "slack"),
        ("notify: [{type: email, to: [nobody]}]", "notify.0.to.0", "mail address"),
        ("notify: [{type: slack, token: xoxb-1, channel: c}]", "notify.0.token", "environment"),
        ("mode: both", "mode", "record"),
        ("message: '{{ decision.by }}'", "message", "decision"),
    ],
)  # fmt: skip
def test_every_rule_of_a_policy_has_a_place(keys: str, where: str, words: str) -> None:
    error = only_error(approval(keys))

    assert error.where == f"agent.workflow.1.{where}"
    assert words in error.message
    assert "xoxb-1" not in error.message


def test_record_is_for_approval_steps_only() -> None:
    assert sign(approval("mode: record")).mode == "record"
    found = errors(v12("  approvals: {mode: record}\n"))
    assert [error.where for error in found] == ["agent.approvals.mode"]


def test_a_policy_on_a_condition_that_asks_nobody_is_refused() -> None:
    branches = "then: execute_tool(x), else: execute_tool(y)"
    text = f"  workflow:\n    - {{step: a, type: condition, if: 'true', {branches}, recall: 1h}}\n"

    assert only_error(v12(text)).where == "agent.workflow.0.recall"


def test_rules_read_the_action_and_the_output_and_tools_called_on_a_decision_read_it() -> None:
    tell = TELL.replace("{{ input }}", "{{ decision.by }}")
    calls = "on_decision: {rejected: execute_tool(tell)}, auto: {approve_if: 'action.x = output.y'}"
    text = approval(calls).replace(TELL, tell)

    accepted(text)
    assert (
        only_error(text.replace("rejected: ", "").replace("on_decision: {execute_tool(tell)}", "mode: gate")).where
        == "agent.tools.1.url"
    )


# Triggers and steps on the store -----------------------------------------------------------------------------


def test_triggers() -> None:
    hook = loaded(v12("  trigger: {type: webhook, secret: '${S}', dedupe: '{{ trigger.id }}', dedupe_ttl: 1d}\n"))
    plan = loaded(v12("  trigger: {type: schedule, cron: '0 8 * * mon-fri', timezone: Asia/Singapore, input: go}\n"))
    poll = loaded(
        v12(
            "  trigger: {type: poll, every: 1m, tool: tell, items: orders, key: id, cursor: '$max(orders.at)'}\n"
            f"  tools:\n{TELL}"
        )
    )

    assert hook.agent.trigger == WebhookTrigger(secret="${S}", dedupe="{{ trigger.id }}", dedupe_ttl=86400)
    assert plan.agent.trigger == ScheduleTrigger(cron="0 8 * * mon-fri", timezone="Asia/Singapore", input="go")
    assert poll.agent.trigger == PollTrigger(every=60, tool="tell", items="orders", key="id", cursor="$max(orders.at)")


@pytest.mark.parametrize(
    ("trigger", "where", "words"),
    [
        ("{type: cron}", "type", "schedule"),
        ("{}", "type", "missing"),
        ("{type: schedule}", "cron", "required"),
        ("{type: schedule, cron: '@daily'}", "cron", "five fields"),
        ("{type: schedule, cron: '* * * * * *'}", "cron", "five fields"),
        ("{type: schedule, cron: '0 0 31 2 *'}", "cron", "not a schedule"),
        ("{type: schedule, cron: '0 8 * * *', timezone: Mars/North}", "timezone", "time zone"),
        ("{type: webhook, secret: abc}", "secret", "environment"),
        ("{type: webhook, dedupe_ttl: 1d}", "dedupe_ttl", "dedupe"),
        ("{type: webhook, dedupe: '{{ read.text }}'}", "dedupe", "read"),
        ("{type: poll, every: 1m, tool: gone, items: a, key: b}", "tool", "no tool"),
        ("{type: poll, every: 1m, tool: pay, items: a, key: b}", "tool", "needs an approval"),
        ("{type: poll, every: 1m, tool: tell, items: 'a +', key: b}", "items", "JSONata"),
        ("{type: poll, every: 60, tool: tell, items: a, key: b}", "every", "unit"),
        ("{type: poll, every: 1m, tool: tell, items: a, key: b, seen_ttl: 60s}", "seen_ttl", "longer than"),
        ("{type: poll, every: 5w, tool: tell, items: a, key: b}", "every", "30 days"),
    ],
)
def test_every_rule_of_a_trigger_has_a_place(trigger: str, where: str, words: str) -> None:
    error = only_error(v12(f"  trigger: {trigger}\n  tools:\n{PAY}{TELL}"))

    assert error.where == f"agent.trigger.{where}"
    assert words in error.message


def test_steps_on_the_store() -> None:
    once = loaded(v12("  workflow:\n    - {step: a, type: once, key: '{{ input }}', ttl: 1d}\n")).agent.workflow[0]

    assert once == OnceStep(step="a", key="{{ input }}", ttl=86400)
    accepted(v12("  workflow:\n    - {step: a, type: open, key: k, value: {x: ['{{ trigger }}']}, ttl: 7d}\n"))
    accepted(v12("  workflow:\n    - {step: a, type: close, key: k}\n"))
    assert only_error(v12("  workflow:\n    - {step: a, type: once, key: k}\n")).where == "agent.workflow.0.ttl"
    assert (
        only_error(v12("  workflow:\n    - {step: a, type: once, key: '{{ nope }}', ttl: 1d}\n")).where
        == "agent.workflow.0.key"
    )
