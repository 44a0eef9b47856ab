"""Who acts at the command line, and under which permission (design 5.1)."""

from __future__ import annotations

import shlex

from django.core.management.base import CommandParser

from approvals.actors import cli_actor, operating_system_user
from approvals.policy import has_permission
from statestore.conf import value as setting
from workflows.actors import Actor
from workflows.errors import NotAllowed

START = "workflows.start_run"
VIEW = "workflows.view_run"
OPERATE = "workflows.operate_run"


def add_as(parser: CommandParser) -> None:
    """The option that names the user."""
    parser.add_argument("--as", dest="as_user", metavar="USER", help="act as this user (default: KAMPONG_CLI_USER)")


def as_words(as_user: str | None) -> str:
    """What a command line needs at its end so that it acts as this user; `USER` where nobody was named yet."""
    if as_user is None and setting("KAMPONG_CLI_USER"):
        return ""
    return f" --as {shlex.quote(as_user) if as_user else 'USER'}"


def allowed(as_user: str | None, permission: str) -> Actor:
    """The named user, who holds the permission; NotAuthenticated or NotAllowed otherwise."""
    actor = cli_actor(as_user)
    _need(actor, permission)
    return actor


def starter() -> Actor:
    """Who starts a run here: KAMPONG_CLI_USER under that user's permissions, else the operating system's user.

    Whoever can reach the database and the spec with this command needs no account to begin with.
    """
    if setting("KAMPONG_CLI_USER"):
        return allowed(None, START)
    name = operating_system_user()
    return Actor(label=name, surface="cli", detail=name)


def _need(actor: Actor, permission: str) -> None:
    if not has_permission(actor, permission):
        rule = f"the permission {permission} is needed, and {actor.label} does not have it"
        raise NotAllowed(rule, rule=rule)
