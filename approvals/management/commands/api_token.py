"""`api_token`: a new token for the HTTP interface, shown this once."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser

from approvals.models import ApiToken
from approvals.tokens import create_token
from workflows.engine import jsontext
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, Stop, UsageError
from workflows.management.terminal import plain, to_type


class Command(AnsweringCommand):
    help = "Make an API token for a user and print it, once: only a hash of it is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="the user's name")
        parser.add_argument("--name", default="", metavar="N", help="what the token is for, to tell it from others")

    def perform(self, **options: Any) -> int:
        _check_name(options["name"])
        users = get_user_model()
        user = users.objects.filter(**{users.USERNAME_FIELD: options["user"]}).first()
        if user is None:
            raise Stop(plain(f"there is no user {options['user']!r}; {to_type('createsuperuser')} makes one"))
        if not user.is_active:
            raise Stop(plain(f"the user {options['user']!r} is deactivated; a token of theirs would be refused"))
        self.show(create_token(user, options["name"]))
        return DONE


def _check_name(name: str) -> None:
    most = ApiToken._meta.get_field("name").max_length
    try:
        jsontext.check(name)
    except jsontext.NotJson as error:
        raise UsageError(f"--name: {error.reason}") from error
    if most is not None and len(name) > most:
        raise UsageError(f"--name: at most {most} characters")
