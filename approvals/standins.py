"""In whose place users may decide: what was handed to them, and for whom they stand in while those are away."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.contrib.auth.models import AbstractUser

from approvals.models import Absence, ApprovalRequest, Delegation
from approvals.people import active_users
from statestore.clock import now


class StandingIn:
    """For some users and some requests: as many queries for all of them as for one."""

    def __init__(self, users: Collection[int], requests: Iterable[int]) -> None:
        moment = now()
        self._handed: dict[tuple[int, int], list[int]] = {}
        handed = Delegation.objects.filter(request__in=list(requests), to_user_id__in=users).order_by("id")
        for user, request, giver in handed.values_list("to_user_id", "request", "from_user_id"):
            self._handed.setdefault((user, request), []).append(giver)
        self._away: dict[tuple[int, str], list[int]] = {}
        away = Absence.objects.filter(substitute__in=users, starts_at__lte=moment, ends_at__gt=moment).order_by("id")
        for user, workspace, absent in away.values_list("substitute", "workspace", "user"):
            self._away.setdefault((user, workspace), []).append(absent)
        givers = [*self._handed.values(), *self._away.values()]
        self._users = active_users({giver for found in givers for giver in found})

    def for_whom(self, user_id: int, request: ApprovalRequest) -> list[tuple[AbstractUser, str]]:
        """The active users in whose place this one may act on the request, each with the rule in words."""
        handed = self._present(self._handed.get((user_id, request.pk), ()))
        away = self._present(self._away.get((user_id, request.workspace), ()))
        return [
            *((user, f"was handed this by {user.get_username()}") for user in handed),
            *((user, f"stands in for {user.get_username()}, who is away") for user in away),
        ]

    def _present(self, ids: Iterable[int]) -> list[AbstractUser]:
        return [self._users[pk] for pk in ids if pk in self._users]
