"""What a run may keep of a step (design 4)."""

from __future__ import annotations

from workflows.engine import jsontext
from workflows.engine.values import NOTHING, MaybeJson
from workflows.engine.walk import StepFailed

#: One step's output as JSON text, in bytes.
MAX_OUTPUT = 1024 * 1024


def check_output(step: str, output: MaybeJson) -> None:
    """StepFailed unless the output can be stored."""
    if output is NOTHING:
        return
    try:
        jsontext.check(output)
    except jsontext.NotJson as problem:
        where = f" at {problem.path}" if problem.path else ""
        raise StepFailed(f'Step "{step}": its output cannot be kept: {problem.reason}{where}.') from problem
    size = len(jsontext.dumps(output).encode())
    if size > MAX_OUTPUT:
        raise StepFailed(
            f'Step "{step}": its output is {size} bytes of JSON; one step may keep {MAX_OUTPUT} bytes.'
            " Use `extract` to keep less."
        )
