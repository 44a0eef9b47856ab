"""One decision by key, with the work that follows it: in this process, or as a program in one of its own.

As a program it takes the decision's arguments as JSON and prints what came of it, so that a case can decide in a
process that has the store and the spec file and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import django


def decide_and_work(
    key: str, *, approved: bool, user: str, reason: str | None = None, agent_id: str | None = None
) -> dict[str, Any]:
    """`{code: "ok", http, run, status}`, or the refusal's `{code, http, error}`."""
    from django.contrib.auth.models import User

    from approvals.services import decide
    from tests.workbench import acting, work
    from workflows import reading
    from workflows.api.errors import failure_of
    from workflows.errors import Refusal

    actor = acting(User.objects.get(username=user))
    try:
        outcome = decide(key, approved=approved, reason=reason, actor=actor, agent_id=agent_id)
    except Refusal as refusal:
        return {"code": refusal.code, "http": failure_of(refusal).status, "error": refusal.message}
    work()
    state = reading.run_state(outcome.run)
    return {"code": "ok", "http": 200, "run": str(outcome.run.uuid), "status": state["status"]}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    print(json.dumps(decide_and_work(**json.loads(sys.argv[1]))))  # noqa: T201  (its answer)
