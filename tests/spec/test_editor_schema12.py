"""The schema for editors and version 1.2: closed, with policies, triggers and steps on the store (spec 1.2)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.spec.specs import spec
from tests.spec.test_editor_schema import MADE, faults
from workflows.spec.load import load

TOOL = "  tools: [{name: pay, action: http_request, method: POST, url: 'https://x.test/'%s}]\n"
SIGN = "  workflow: [{step: sign, type: approval, %s}]\n"
ALL = TOOL % (
    ", approval: {approvers: {groups: [finance], quorum: 2, four_eyes: true, delegate: true}, digest: required}"
) + (
    "  approvals: {require_reason: reject, escalate: {after: 1h, groups: [heads]}, notify: "
    "[{type: slack, token: '${T}', channel: c}, {type: email, to: [a@b.test]}]}\n"
    "  trigger: {type: schedule, cron: '0 8 * * mon-fri', timezone: UTC, overlap: queue, lock_ttl: 1h, input: x}\n"
    "  workflow:\n"
    "    - {step: first, type: once, key: a, ttl: 1d, on_repeat: stop, release_on_failure: false}\n"
    "    - {step: opened, type: open, key: a, value: [1], ttl: 7d}\n"
    "    - {step: shut, type: close, key: a}\n"
    "    - {step: think, type: action, action: think}\n"
    "    - {step: ask, type: condition, if: 'true', then: request_human_approval, else: execute_tool(pay),"
    " recall: 5m}\n"
    "    - step: sign\n      type: approval\n      editable: [think.text]\n      expires_in: 4h\n"
    "      remind_every: 1h\n      on_expire: reject\n      on_reject: continue\n      mode: record\n"
    "      auto: {approve_if: 'true', reject_if: 'false'}\n"
    "      form: {type: object, properties: {sum: {type: number}}}\n"
)
REFUSED = {
    "an unknown key": "  goals: x\n",
    "an unknown key of a policy": SIGN % "quorum: 2",
    "an unknown key inside": SIGN % "approvers: {quorums: 2}",
    "a bare number for a time": SIGN % "expires_in: 4",
    "a time without a unit": SIGN % "expires_in: '4'",
    "too few people": SIGN % "approvers: {quorum: 0}",
    "an empty list of users": SIGN % "approvers: {users: []}",
    "an expiry that is none": SIGN % "on_expire: explode",
    "no call of a tool": SIGN % "on_decision: {approved: tell}",
    "a form that is no object": SIGN % "form: {type: string}",
    "an unknown key of a tool": TOOL % ", aproval: {}",
    "an unknown trigger": "  trigger: {type: cron}\n",
    "a poll without its key": "  trigger: {type: poll, every: 1m, tool: a, items: b}\n",
    "a lifetime of nothing": "  trigger: {type: webhook, dedupe_ttl: 1d}\n",
    "an unknown kind of step": "  workflow: [{step: a, type: twice, key: b}]\n",
    "a step on the store without a key": "  workflow: [{step: a, type: close}]\n",
    "a reserved name": "  workflow: [{step: cursor, action: b}]\n",
    "an unknown channel": SIGN % "notify: [{type: fax, to: [a@b.test]}]",
}  # fmt: skip


def _tree(rest: str, version: str = "1.2") -> Any:
    return yaml.safe_load(spec(rest, version))


def test_it_knows_every_key_of_1_2() -> None:
    assert load(spec(ALL, "1.2")).errors == ()
    assert faults(_tree(ALL)) == []


@pytest.mark.parametrize("rest", REFUSED.values(), ids=REFUSED.keys())
def test_it_refuses_what_loading_refuses(rest: str) -> None:
    assert load(spec(rest, "1.2")).errors
    assert faults(_tree(rest)) != []


def test_in_1_1_the_new_keys_are_keys_that_nothing_reads() -> None:
    assert faults(_tree(SIGN % "quorum: 2, form: 5", "1.1")) == []
    assert faults(_tree("  trigger: {type: schedule, cron: '0 8 * * *'}\n", "1.1")) != []


def test_every_mapping_of_1_2_is_closed() -> None:
    chosen = {"tool_1.2", "step_1.2", "trigger_1.2", "channel_1.2"}
    for name, made in MADE["definitions"].items():
        if name.endswith("_1.2") and name not in chosen:
            assert made["additionalProperties"] is False, name
