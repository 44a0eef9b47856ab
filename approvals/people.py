"""Users as the policy asks about them: who is active, whether they may decide at all, and in which groups they are.

Each is asked once for each user object, which lives for one page or one decision; of many users, all at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractUser, Group
from django.db.models import Prefetch

DECIDE = "approvals.decide"
_OWN_BACKEND = ["django.contrib.auth.backends.ModelBackend"]


def active_user(user_id: int | None) -> AbstractUser | None:
    """The active user with this id."""
    if user_id is None:
        return None
    users: Any = get_user_model().objects
    found: AbstractUser | None = users.filter(pk=user_id, is_active=True).first()
    return found


def active_users(ids: Collection[int]) -> dict[int, AbstractUser]:
    """The active users with these ids, with what the policy asks of them: three queries, however many they are."""
    if not ids:
        return {}
    groups = Prefetch("groups", Group.objects.order_by("name"))
    users: Any = get_user_model().objects
    found: dict[int, AbstractUser] = {
        user.pk: user for user in users.filter(pk__in=ids, is_active=True).prefetch_related(groups)
    }
    # Where another backend has a say as well, each user is asked by itself.
    deciding = set(holders().filter(pk__in=found).values_list("pk", flat=True)) if _only_own_backend() else None
    for user in found.values():
        _keep(user, "groups", [group.name for group in user.groups.all()])
        if deciding is not None:
            _keep(user, "decides", user.pk in deciding)
    return found


def holders() -> Any:
    """The active users who hold the permission to decide."""
    # The backend's own: a host project's manager need not have `with_perm`.
    return ModelBackend().with_perm(DECIDE)


def decides(user: AbstractUser) -> bool:
    """Whether the user holds the permission to decide."""
    held: bool | None = _kept(user, "decides")
    if held is None:
        held = user.has_perm(DECIDE)
        _keep(user, "decides", held)
    return held


def groups_of(user: AbstractUser) -> list[str]:
    """The names of the user's groups, in order."""
    held: list[str] | None = _kept(user, "groups")
    if held is None:
        held = list(user.groups.order_by("name").values_list("name", flat=True))
        _keep(user, "groups", held)
    return held


def _only_own_backend() -> bool:
    return list(settings.AUTHENTICATION_BACKENDS) == _OWN_BACKEND


def _kept(user: AbstractUser, what: str) -> Any:
    return getattr(user, f"_kampong_{what}", None)


def _keep(user: AbstractUser, what: str, value: object) -> None:
    setattr(user, f"_kampong_{what}", value)
