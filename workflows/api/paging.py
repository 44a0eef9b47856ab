"""`?limit=` and `?after=` of lists: ordered by creation, then id, and `next` is null at the end (design 5.2)."""

from __future__ import annotations

from rest_framework.request import Request

from workflows.errors import Invalid

LIMIT = 50
MOST = 200


def limit_of(request: Request) -> int:
    """The page's length; Invalid for anything but a whole number of 1 to 200."""
    given = request.query_params.get("limit")
    if given is None:
        return LIMIT
    if not _is_number(given) or not 1 <= int(given) <= MOST:
        raise _invalid("limit", f"must be a whole number of 1 to {MOST}")
    return int(given)


def after_of(request: Request) -> int:
    """The id after which the page starts; Invalid for what this interface did not hand out as `next`."""
    given = request.query_params.get("after")
    if given is None:
        return 0
    if not _is_number(given):
        raise _invalid("after", "must be the `next` of an earlier page")
    return int(given)


def seconds_of(request: Request, name: str, *, default: float, most: float) -> float:
    """A number of seconds in the query; Invalid outside 0 to `most`."""
    given = request.query_params.get(name)
    if given is None:
        return default
    whole, _, fraction = given.partition(".")
    if not _is_number(whole) or (fraction and not _is_number(fraction)) or not 0 <= float(given) <= most:
        raise _invalid(name, f"must be a number of seconds, 0 to {most:g}")
    return float(given)


def flag_of(request: Request, name: str) -> bool:
    """`1` or `true`, `0` or `false`; false when it is not there."""
    given = request.query_params.get(name, "0")
    if given not in ("0", "1", "true", "false"):
        raise _invalid(name, "must be 1 or 0")
    return given in ("1", "true")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", [{"path": path, "message": message}])
