"""Acts in processes of their own, for tests that kill or stop them: `advance RUN`, `decide KEY USER yes|no`, `send`,
`sweep`, `house`, `withdraw KEY USER`, `deliver SPEC DELIVERY`, `poll`, `fire`.

One process loads Django and forks a child for each act: a new interpreter for each would take most of the suite's
time. It reads requests, JSON lines, from stdin and answers each with one: `start` with the child's id, `poll` with how
it ended (null while it runs, the negative signal if one ended it).
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django


def act(name: str, *words: str) -> int:
    """Do it; a refusal is exit code 2."""
    from approvals.expiry import expire_due
    from approvals.notices import sender
    from workflows.advance import advance
    from workflows.errors import Refusal
    from workflows.triggers.polls import poll_next
    from workflows.triggers.schedules import fire_due

    one_pass: dict[str, Callable[[], object]]
    one_pass = {"send": sender.send_due, "sweep": expire_due, "poll": poll_next, "fire": fire_due}
    try:
        if name == "advance":
            advance("default", words[0])
        elif name in one_pass:
            one_pass[name]()
        elif name == "house":
            keep_house()
        elif name == "deliver":
            deliver(*words)
        else:
            as_somebody(name, *words)
    except Refusal:
        return 2
    return 0


def keep_house() -> None:
    from workflows import housekeeping

    for chore in housekeeping.chores():
        while chore.run():
            pass


def deliver(spec: str, key: str) -> None:
    from workflows import webhooks
    from workflows.idempotency import Delivery
    from workflows.registry import read_spec
    from workflows.runs import start_run

    delivery = Delivery(key=key, seconds=3600)
    start_run(read_spec(spec), input="{}", actor=webhooks.sender("clerk"), delivery=delivery)


def as_somebody(name: str, what: str, username: str, *words: str) -> None:
    """What a person does, named by the key or the kind of act; `decide` unless it says otherwise."""
    from django.contrib.auth.models import User

    from approvals.actors import actor_for_user
    from approvals.editing import edit_request
    from approvals.rebinding import rebind
    from approvals.recall import withdraw
    from approvals.services import decide
    from workflows.triggers import resets

    actor = actor_for_user(User.objects.get(username=username), "cli")
    if name == "withdraw":
        withdraw(what, actor=actor, reason="no")
    elif name == "edit":
        edit_request(what, edits=json.loads(words[0]), actor=actor)
    elif name == "set_back":
        getattr(resets, what)(words[0], actor=actor, reason="no")
    elif name == "rebind":
        rebind(what, actor=actor, reason="new")
    else:
        decide(what, approved=words[0] == "yes", actor=actor)


def born(request: dict[str, Any]) -> int:
    """The child's whole life, under the environment and with the output that the request names."""
    from django.conf import settings
    from django.db import connections

    from statestore.conf import from_environment

    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(request["env"])
    for name, value in from_environment(os.environ).items():
        setattr(settings, name, value)
    try:
        return act(*request["words"])
    finally:
        connections.close_all()


def start(request: dict[str, Any]) -> int:
    """Fork; the child's id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = born(request)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


def poll(pid: int) -> int | None:
    """How the child ended; None while it lives."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def main() -> None:
    """Until stdin ends."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    import workflows.advance  # noqa: F401  (before the first fork, so that no child has to)

    gc.freeze()  # nor copies all that is loaded, as it would do by looking at it

    for line in sys.stdin:
        request = json.loads(line)
        answer = start(request) if request["do"] == "start" else poll(request["pid"])
        print(json.dumps(answer), flush=True)  # noqa: T201  (the parent reads it)


if __name__ == "__main__":
    main()
