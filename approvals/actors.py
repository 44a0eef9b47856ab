"""From a Django user or a terminal to the Actor that the services are given."""

from __future__ import annotations

import getpass
import socket

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AbstractUser, AnonymousUser

from statestore.conf import value as setting
from workflows.actors import Actor, Surface
from workflows.errors import NotAllowed, NotAuthenticated


def actor_for_user(user: AbstractBaseUser | AnonymousUser, surface: Surface, detail: str = "") -> Actor:
    """NotAuthenticated for the anonymous user and for a deactivated one."""
    if not user.is_authenticated or not user.is_active or not isinstance(user, AbstractUser):
        raise NotAuthenticated("sign in, or send an API token")
    return Actor(label=user.get_full_name() or user.get_username(), surface=surface, user_id=user.pk, detail=detail)


def cli_actor(as_user: str | None = None) -> Actor:
    """The user named by `--as` or KAMPONG_CLI_USER, with the operating system's user and host kept beside it."""
    name = as_user or setting("KAMPONG_CLI_USER")
    if not name:
        raise NotAuthenticated("say who decides: --as USER, or set KAMPONG_CLI_USER")
    users = get_user_model()
    try:
        user = users.objects.get(**{users.USERNAME_FIELD: name})
    except users.DoesNotExist as error:
        raise NotAllowed(f"there is no user {name!r}") from error
    return actor_for_user(user, "cli", detail=operating_system_user())


def operating_system_user() -> str:
    """`name@host` of whoever runs this process."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return f"{name}@{socket.gethostname()}"
