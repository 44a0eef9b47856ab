"""`slack_link`: an administrator says which Slack account decides as which user."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser

from approvals import slack_links
from approvals.actors import operating_system_user
from workflows.actors import Actor
from workflows.errors import Invalid
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, Stop, UsageError
from workflows.management.terminal import plain, to_type


class Command(AnsweringCommand):
    help = "Let a Slack account decide as a user, in place of whomever it decided as before. It is kept in the audit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="the user's name")
        parser.add_argument(
            "account", metavar="TEAM/SLACKID", help="ids as Slack has them, such as T024BE7LD/U061F7AUR"
        )
        parser.add_argument("--name", default="", metavar="N", help="how the account is called, for people")

    def perform(self, **options: Any) -> int:
        team, _, slack_id = options["account"].partition("/")
        try:
            account = slack_links.account(team, slack_id, options["name"])
        except Invalid as problem:
            raise UsageError(plain(f"{options['account']!r}: {problem.message}")) from problem
        users = get_user_model()
        user = users.objects.filter(**{users.USERNAME_FIELD: options["user"]}).first()
        if user is None:
            raise Stop(plain(f"there is no user {options['user']!r}; {to_type('createsuperuser')} makes one"))
        name = operating_system_user()
        slack_links.link(account, user, actor=Actor(label=name, surface="cli", detail=name))
        self.show(plain(f"The Slack account {account.detail} decides as {user.get_username()} from now on."))
        return DONE
