"""One decision by key with the work that follows it: in this process, or in a fresh one.

As a program it answers decisions, one a line, each in a new process. It has the code loaded and forks, which spares
each of them the second that Django takes to start; it opens no connection and reads no spec itself, so a new process
knows nothing but what is in the database and on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import django

DONE, FAILED = "done", "failed"


def decide_and_work(
    key: str, *, approved: bool, user: str, reason: str | None = None, agent_id: str | None = None
) -> dict[str, Any]:
    """`{code: "ok", http, run}` once the run waits again or has ended, or the refusal's `{code, http, error}`."""
    from django.contrib.auth.models import User

    from approvals.services import decide
    from tests.workbench import acting, work
    from workflows.api.errors import failure_of
    from workflows.errors import Refusal

    actor = acting(User.objects.get(username=user))
    try:
        outcome = decide(key, approved=approved, reason=reason, actor=actor, agent_id=agent_id)
    except Refusal as refusal:
        return {"code": refusal.code, "http": failure_of(refusal).status, "error": refusal.message}
    work()
    return {"code": "ok", "http": 200, "run": str(outcome.run.uuid)}


class FreshProcesses:
    """Decides in processes of their own, on the database of the running test."""

    def __init__(self, env: Mapping[str, str], root: os.PathLike[str]) -> None:
        command = [sys.executable, "-m", "tests.conformance.deciding"]
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(command, env=dict(env), cwd=root, stdin=pipe, stdout=pipe, text=True)

    def decide(self, key: str, **asked: Any) -> dict[str, Any]:
        """What `decide_and_work` answers there; AssertionError when that process fails, with its words on stderr."""
        if self._program.stdin is None or self._program.stdout is None:
            raise AssertionError("started without pipes")
        line = {"env": dict(os.environ), "asked": {"key": key, **asked}}
        self._program.stdin.write(json.dumps(line) + "\n")
        self._program.stdin.flush()
        said = self._program.stdout.readline()
        ended = said if said in ("", f"{FAILED}\n") else self._program.stdout.readline()
        assert ended == f"{DONE}\n", f"the process said {said!r} and {ended!r}"
        answer: dict[str, Any] = json.loads(said)
        return answer

    def close(self) -> None:
        """End the program, which has nothing running then."""
        self._program.communicate(timeout=30)


def main() -> None:
    """Answer each line in a fork with what came of the decision, unless it failed, and then with how the fork ended."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()
    import tests.workbench  # noqa: F401  (loaded here once, and not in every fork)

    for line in sys.stdin:
        fresh = os.fork()
        if fresh == 0:
            given = json.loads(line)
            os.environ.clear()
            os.environ.update(given["env"])
            say(json.dumps(decide_and_work(**given["asked"])))
            sys.exit()
        _, status = os.waitpid(fresh, 0)
        say(DONE if status == 0 else FAILED)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
