"""The doctor's look at approval policies: whether those who must decide are there, and whether they can be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection

from approvals import eligible, people
from approvals.policy import DECIDE, who
from workflows.doctor.findings import Check, Patient, failed, passed, warned
from workflows.engine import components
from workflows.spec.errors import listed
from workflows.spec.model import ApprovalStep, ComponentTool, ConditionStep, Tool, reference_name
from workflows.spec.patterns import ASK_A_PERSON
from workflows.spec.policy_model import Approvers, EmailChannel, Policy, SlackChannel
from workflows.spec.trigger_model import WebhookTrigger

AREA: Final = "approvals"
CHANNELS: Final = "notices"
START: Final = "workflows.start_run"
#: The variables without which Slack's buttons are not believed, and mails do not leave.
SIGNING: Final = "SLACK_SIGNING_SECRET"
MAIL: Final = "EMAIL_URL"

#: Policies, each with the gates that open under it in words.
Gates: TypeAlias = list[tuple[Policy, str]]


def look(patient: Patient) -> Iterator[Check]:
    """All policies under which a gate of the spec opens, each once. People are looked up where a policy names some."""
    gates = gates_of(patient)
    yield from _triggers(patient, gates)
    yield from _channels(patient, gates)
    if not any(_of_people(policy) for policy, _ in gates):
        return
    if (why := _no_database()) is not None:
        yield warned(AREA, f"who may decide was not looked at: {why}")
        return
    try:
        found = [check for policy, where in gates for check in _people(patient, policy, where)]
    except DatabaseError as problem:
        line = str(problem).partition("\n")[0]
        yield warned(
            AREA, f"who may decide was not looked at: the database does not answer, or is not migrated: {line}"
        )
        return
    yield from found


def gates_of(patient: Patient) -> Gates:
    """Every policy under which a gate may open, with the gates in words."""
    agent = patient.spec.agent
    found: Gates = []
    for step in agent.workflow:
        match step:
            case ApprovalStep():
                found.append((step.policy, f'step "{step.step}"'))
            case ConditionStep() if ASK_A_PERSON in (step.then, step.else_):
                found.append((step.policy, f'step "{step.step}"'))
    found += [(tool.policy, f'tool "{tool.name}"') for tool in patient.tools() if _asks(tool)]
    if agent.guardrails is not None and agent.guardrails.fallback_action == ASK_A_PERSON:
        found.append((agent.policy, "the guardrail"))
    alike: dict[str, Gates] = {}
    for policy, where in found:
        alike.setdefault(policy.model_dump_json(), []).append((policy, where))
    return [(gates[0][0], listed(where for _, where in gates)) for gates in alike.values()]


def _asks(tool: Tool) -> bool:
    if isinstance(tool, ComponentTool):
        return components.problem(tool) is None and components.needs_approval(tool)
    return bool(tool.requires_approval)


def _of_people(policy: Policy) -> bool:
    mails = any(isinstance(channel, EmailChannel) for channel in policy.notify or ())
    return policy.approvers != Approvers() or policy.escalate is not None or mails


def _no_database() -> str | None:
    """Why there is none, found without making one: SQLite creates the file that it is asked to open."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and "memory" not in name and not Path(name).exists():
        return "there is no database here yet"
    return None


# People -------------------------------------------------------------------------------------------------------


def _people(patient: Patient, policy: Policy, where: str) -> Iterator[Check]:
    found = [
        *(failed(AREA, f"{where}: {one}") for one in eligible.unknown_names(policy)),
        *_without_permission(policy, where),
        *_enough(patient, policy, where),
        *_takers(policy, where),
        *_addresses(policy, where),
    ]
    yield from found
    if not any(check.status == "fail" for check in found) and policy.approvers != Approvers():
        yield passed(AREA, f"{where}: {who(policy.approvers)}: enough of them can decide today")


def _without_permission(policy: Policy, where: str) -> Iterator[Check]:
    users: Any = get_user_model().objects
    field = get_user_model().USERNAME_FIELD
    able = set(people.holders().values_list(field, flat=True))
    named = users.filter(**{f"{field}__in": policy.approvers.users or ()}).order_by(field).values_list(field, flat=True)
    for name in named:
        if name not in able:
            yield warned(
                AREA, f'{where}: the user "{name}" does not hold {DECIDE}, or is deactivated: they cannot decide'
            )
    groups = [(name, "") for name in policy.approvers.groups or ()]
    groups += [(name, " when it is escalated") for name in (policy.escalate.groups if policy.escalate else ())]
    there = set(Group.objects.filter(name__in=[name for name, _ in groups]).values_list("name", flat=True))
    for name, when in groups:
        if name in there and not eligible.members((name,)):
            yield warned(AREA, f'{where}: nobody in the group "{name}" holds {DECIDE}: nobody of it can decide{when}')


def _enough(patient: Patient, policy: Policy, where: str) -> Iterator[Check]:
    approvers = policy.approvers
    able = eligible.able(policy)
    needed = f"{approvers.quorum} must" if approvers.quorum > 1 else "one must"
    later = eligible.able(policy, escalated=policy.escalate.groups) if policy.escalate is not None else set()
    hope = " before it is escalated" if len(later) >= approvers.quorum else ""
    if len(able) < approvers.quorum:
        make = warned if hope else failed
        yield make(AREA, f"{where}: {len(able)} of {who(approvers)} can approve today, and {needed}{hope}")
        return
    if not approvers.four_eyes or len(able) > approvers.quorum or not _has_starter(patient):
        return
    starters = set(_starters())
    if inside := starters & able:
        every = "whoever may start a run" if inside == starters else f"{len(inside)} of those who may start a run"
        make = failed if inside == starters and not hope else warned
        yield make(
            AREA,
            f"{where}: {every} may not approve it (four eyes), and of {who(approvers)} then {len(able) - 1} can "
            f"approve, and {needed}{hope}",
        )


def _starters() -> Any:
    return ModelBackend().with_perm(START).values_list("pk", flat=True)


def _takers(policy: Policy, where: str) -> Iterator[Check]:
    if not policy.approvers.delegate:
        return
    able = eligible.able(policy)
    if not people.holders().exclude(pk__in=able).exists():
        yield warned(AREA, f"{where}: it can be handed to nobody: all who hold {DECIDE} may decide it already")


def _addresses(policy: Policy, where: str) -> Iterator[Check]:
    named = [to for channel in policy.notify or () if isinstance(channel, EmailChannel) for to in channel.to]
    users: Any = get_user_model().objects
    field = get_user_model().get_email_field_name()
    for address in dict.fromkeys(named):
        if not users.filter(**{f"{field}__iexact": address}, is_active=True).exists():
            text = (
                f"{where}: {address} is the address of no user: its mail has no link to decide with, and leads to the"
            )
            yield warned(CHANNELS, f"{text} sign-in page")


# Triggers and channels ----------------------------------------------------------------------------------------


def _has_starter(patient: Patient) -> bool:
    """Whether a user starts the runs: not where a clock does, or a webhook with a secret of its own."""
    trigger = patient.spec.agent.trigger
    return trigger is None or (isinstance(trigger, WebhookTrigger) and trigger.secret is None)


def _triggers(patient: Patient, gates: Gates) -> Iterator[Check]:
    trigger = patient.spec.agent.trigger
    for policy, where in gates:
        if not policy.approvers.four_eyes or trigger is None:
            continue
        if _has_starter(patient):
            yield warned(AREA, f"{where}: four eyes: the starter is the user whose token or session calls the webhook")
        else:
            kind = trigger.type
            yield warned(AREA, f"{where}: four eyes: a {kind} has no starter, so its runs may be approved by everybody")


def _channels(patient: Patient, gates: Gates) -> Iterator[Check]:
    notifier = patient.spec.agent.approval_notifier
    slack = notifier is not None
    for policy, where in gates:
        for channel in policy.notify or ():
            if isinstance(channel, SlackChannel):
                slack = True
                name = reference_name(channel.token)
                if not patient.has(name):
                    text = f"the environment variable {name} of its Slack channel is not set: nobody is told there"
                    yield warned(CHANNELS, f"{where}: {text}")
            elif not patient.has(MAIL):
                yield warned(CHANNELS, f"{where}: no mail leaves: the environment variable {MAIL} is not set")
    if slack and not patient.has(SIGNING):
        yield warned(CHANNELS, f"buttons in Slack decide nothing: the environment variable {SIGNING} is not set")
    mails = [where for policy, where in gates if policy.remind_every and not patient.has(MAIL)]
    if mails:
        yield warned(CHANNELS, f"{listed(mails)}: reminders are mails, and the environment variable {MAIL} is not set")
