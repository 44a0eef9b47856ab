"""The limits of engine semantics 8, counted in steps: what one evaluation, or one tool's batch of them, has used up.

The second of the table is a number of steps and no clock, so that a busy machine neither fails an expression nor lets
one pass. A step is one evaluated node; work that no node does (copying a list, joining texts) is charged by its size,
and so is the memory it takes: a step comes to some hundred bytes at most, so the steps run out before the memory does.
The 2,000,000 nodes of the table would come after the second and need no count of their own.
"""

from __future__ import annotations

from typing import Any, Final

#: About a second of an ordinary processor.
STEPS: Final = 1_000_000
DEPTH: Final = 400
TEXT: Final = 1_000_000
ITEMS: Final = 200_000
COMPARED: Final = 10_000
_ITEMS_A_STEP: Final = 8
_BYTES_A_STEP: Final = 256
#: Making a function, which holds on to its surroundings.
FUNCTION: Final = 6
#: A call of one of the library's functions, which tests its arguments with a pattern.
CALL: Final = 4


class Problem(BaseException):
    """The evaluation ends here. Not an Exception, so that nothing in the library takes it for its own."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Meter:
    """The steps that are left. One for the whole child, which evaluates one request at a time."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def refill(self) -> None:
        """Start a request."""
        self.left = STEPS

    def charge(self, steps: int) -> None:
        """Use steps up; Problem when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise out_of_steps()

    def text(self, text: str, *, weight: int = 1) -> None:
        """Charge for work on every character of a text, `weight` times as slow as a copy."""
        size = len(text) if text.isascii() else len(text) * 4
        self.charge(size * weight // _BYTES_A_STEP)

    def items(self, collection: Any, *, weight: int = 1) -> None:
        """Charge for work on every item of a list or mapping, `weight` times as slow as a copy."""
        self.charge(1 + len(collection) * weight // _ITEMS_A_STEP)

    def value(self, value: Any, *, weight: int = 1) -> None:
        """Charge for work on a value, not on what is in it."""
        if isinstance(value, str):
            self.text(value, weight=weight)
        elif isinstance(value, list | dict):
            self.items(value, weight=weight)


#: The child's only meter.
meter: Final = Meter()


def out_of_steps() -> Problem:
    return Problem(f"it takes longer than 1 second, the limit ({STEPS} steps)")


def refuse_long_list(length: int) -> None:
    """Problem when a list would be longer than one may be."""
    if length > ITEMS:
        raise Problem(f"a list of more than {ITEMS} items was made")


def refuse_long_text(length: int) -> None:
    """Problem when a text would be longer than one may be."""
    if length > TEXT:
        raise Problem(f"a text longer than {TEXT} characters was made")
