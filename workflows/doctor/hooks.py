"""Whether the deliveries of a webhook can be believed (spec 1.2, Triggers)."""

from __future__ import annotations

from collections.abc import Iterator

from statestore.conf import value as setting
from workflows import webhooks
from workflows.doctor.findings import Check, Patient, failed, passed, warned


def look(patient: Patient) -> Iterator[Check]:
    """The secret of the trigger, or the one that the setting names for the agent."""
    spec = patient.spec
    if spec.is_1_2 and spec.agent.id in setting(webhooks.SETTING):
        text = f"{webhooks.SETTING} names this agent and is not read for it: a spec of version 1.2 says it itself"
        yield warned("webhook", f"{text}, as the secret of its trigger")
    variable = webhooks.secret_variable(spec)
    if variable is None:
        return
    problem = webhooks.problem_with(patient.environ.get(variable, ""))
    if problem:
        text = f"the environment variable {variable} {problem}: every delivery is refused with 401"
        yield failed("webhook", f"{text}; set it to the secret that the sender signs with")
    else:
        yield passed("webhook", f"deliveries are signed with the secret in {variable}, which is set")
