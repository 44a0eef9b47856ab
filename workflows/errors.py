"""Refusals of this app. Each has a stable `code` (design 5.2), a sentence with the next move, and `extra` facts."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """Nothing was changed. `code` is the wire's word for why; `extra` goes beside it in the answer."""

    code = "not_possible"

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra = extra


class Invalid(Refusal):
    """The request is wrong; `extra["errors"]` lists `{path, message}`."""

    code = "invalid"

    def __init__(self, message: str, errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(message, errors=errors or [])


class TooLarge(Refusal):
    """Over a limit; `extra["limit"]` says which, in bytes."""

    code = "too_large"


class RunNotFound(Refusal):
    """No such run in this workspace."""

    code = "run_not_found"


class AgentNotFound(Refusal):
    """No spec with this agent id is served."""

    code = "agent_not_found"


class SpecBroken(Refusal):
    """The spec's file is broken, missing, or shares its id: no new run starts."""

    code = "spec_broken"


class ModelUnavailable(Refusal):
    """A run cannot be created: no model block, or the key's variable is unset (engine semantics 2.1)."""

    code = "model_unavailable"


class FixturesUnusable(Refusal):
    """A run cannot be created: its calls cannot be recorded in, or replayed from, the folder that was named."""


class SpecChanged(Refusal):
    """The file's hash is not the one that the run started with; restore the file, or reject or cancel."""

    code = "spec_changed"

    def __init__(self, recorded: str, present: str | None) -> None:
        now = f"its file has {present[:12]} now" if present else "its file is missing or invalid now"
        super().__init__(
            f"the spec changed: the run started with {recorded[:12]}, {now}; restore the file to go on",
            recorded=recorded[:12],
            present=present[:12] if present else None,
        )


class NotPossible(Refusal):
    """The run's status does not allow this act; `extra["status"]` says what it is."""

    code = "not_possible"


class NothingPending(Refusal):
    """The run does not wait for anybody."""

    code = "nothing_pending"


class Busy(Refusal):
    """The database did not let us in for too long; try again."""

    code = "busy"


class NotAuthenticated(Refusal):
    """Nobody is signed in."""

    code = "not_authenticated"


class NotAllowed(Refusal):
    """Signed in, and not allowed; the message names the rule."""

    code = "not_allowed"
