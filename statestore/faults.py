"""Named points at which a test may kill, stop or delay this process. Closed unless KAMPONG_TESTING is set."""

from __future__ import annotations

import os
import signal
import time

from statestore.conf import value


def point(name: str) -> None:
    """Do what `KAMPONG_FAULTS` says for this point (`name=kill`, `name=stop`, `name=sleep:0.5`, comma separated)."""
    plan = os.environ.get("KAMPONG_FAULTS")
    if not plan or not value("KAMPONG_TESTING"):
        return
    for entry in plan.split(","):
        at, _, act = entry.partition("=")
        if at != name:
            continue
        if act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif act == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif act.startswith("sleep:"):
            time.sleep(float(act.removeprefix("sleep:")))
        else:
            raise ValueError(f"KAMPONG_FAULTS: {entry!r} is not NAME=kill, NAME=stop or NAME=sleep:SECONDS")
