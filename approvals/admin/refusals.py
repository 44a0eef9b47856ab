"""A refused decision as a sentence, the next move, and a status: the one error table says which."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.errors import ActionChanged, AlreadyResolved, ApprovalNotFound, in_words
from workflows.admin.acts import REFUSALS
from workflows.api.errors import failure_of
from workflows.errors import NotAllowed, SpecChanged

__all__ = ["REFUSALS", "Problem", "problem_of"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why nothing was changed, and what can be done about it."""

    sentence: str
    next_move: str
    status: int
    #: Ids and labels of the fields where something is wrong: the page leads there.
    places: tuple[tuple[str, str], ...] = ()


def problem_of(error: Exception) -> Problem:
    """Words without the key: the page that shows them is the request's own."""
    told = failure_of(error)
    sentence, next_move = str(told.body["error"]), "Look at the request again."
    match error:
        case AlreadyResolved() | ApprovalNotFound():
            decision = error.extra.get("decision")
            ending = in_words(decision) if decision else "it was resolved or its time is over"
            sentence = f"too late, this request is over: {ending}. Nothing was changed by you"
            next_move = "Open the run to see how it went on."
        case SpecChanged():
            next_move = (
                "To approve, put the spec's file back as it was when the run started, or bind the request to the "
                "changed spec, and try again. Reject works as it is, and so does cancelling the run."
            )
        case ActionChanged():
            sentence = "the action is not the one that you were shown. Nothing was changed"
            next_move = "What you see below is what would run now. Read it again before you decide."
        case NotAllowed():
            sentence = f"you may not decide this request: {error.message}"
            next_move = "Somebody else has to decide it."
        case _ if told.status == 503:
            next_move = "Press again in a moment; nothing was lost."
    return Problem(sentence=sentence[:1].upper() + sentence[1:], next_move=next_move, status=told.status)
