"""Four people who press the same button in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection

from workflows.errors import Refusal


def four_press(act: Callable[[], object]) -> list[str]:
    """`done`, or the code of the refusal, for each of them, sorted."""
    outcomes: list[str] = []
    together = threading.Barrier(4)

    def press() -> None:
        together.wait(10)
        try:
            act()
            outcomes.append("done")
        except Refusal as refusal:
            outcomes.append(refusal.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return sorted(outcomes)
