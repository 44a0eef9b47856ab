"""The filters of `approvals list`; `GET /approvals` and the admin have the same."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from approvals.narrowing import Narrowing
from approvals.people import active_user
from workflows.actors import Actor
from workflows.spec import durations


def add_filters(parser: CommandParser) -> None:
    """Each may be left out; together all have to fit."""
    parser.add_argument("--agent", default="", metavar="ID", help="of this workflow")
    parser.add_argument("--step", default="", metavar="NAME", help="at this step")
    parser.add_argument("--group", default="", metavar="NAME", help="addressed to this group")
    parser.add_argument("--mine", action="store_true", help="what waits for you: you may decide it and have not yet")
    parser.add_argument("--older-than", type=_span, metavar="TIME", help="asked so long ago: 30m, 4h, 1d, 1w")
    parser.add_argument("--expires-within", type=_span, metavar="TIME", help="at its end so soon")
    parser.add_argument("--search", default="", metavar="TEXT", help="in agent, step or question; or a whole key")


def asked(options: dict[str, Any], actor: Actor) -> Narrowing:
    """What the options ask for."""
    return Narrowing(
        agent=options["agent"],
        step=options["step"],
        group=options["group"],
        mine=active_user(actor.user_id) if options["mine"] else None,
        older_than=options["older_than"],
        expires_within=options["expires_within"],
        q=options["search"],
    )


def _span(text: str) -> timedelta:
    try:
        return timedelta(seconds=durations.seconds(text))
    except ValueError as problem:
        raise ArgumentTypeError(f"{text!r} is no length of time, such as 30m, 4h, 1d or 1w") from problem
