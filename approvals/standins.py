"""In whose place a user may decide: what was handed to them, and for whom they stand in while those are away."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser

from approvals.models import Absence, ApprovalRequest, Delegation
from statestore.clock import now


class StandingIn:
    """For one user and some requests; two queries, and one more for those in whose place the user acts."""

    def __init__(self, user_id: int, requests: Iterable[int]) -> None:
        moment = now()
        self._handed: dict[int, list[int]] = {}
        for request, giver in (
            Delegation.objects.filter(request__in=list(requests), to_user_id=user_id)
            .order_by("id")
            .values_list("request", "from_user_id")
        ):
            self._handed.setdefault(request, []).append(giver)
        away = Absence.objects.filter(substitute=user_id, starts_at__lte=moment, ends_at__gt=moment)
        self._away: dict[str, list[int]] = {}
        for workspace, absent in away.order_by("id").values_list("workspace", "user"):
            self._away.setdefault(workspace, []).append(absent)
        ids = {giver for givers in self._handed.values() for giver in givers}
        ids |= {absent for found in self._away.values() for absent in found}
        users = get_user_model().objects.filter(pk__in=ids, is_active=True) if ids else ()
        self._users: dict[int, AbstractUser] = {user.pk: user for user in users}

    def for_whom(self, request: ApprovalRequest) -> list[tuple[AbstractUser, str]]:
        """The active users in whose place this one may act on the request, each with the rule in words."""
        found = []
        for giver in self._handed.get(request.pk, []):
            if giver in self._users:
                found.append((self._users[giver], f"was handed this by {self._users[giver].get_username()}"))
        for absent in self._away.get(request.workspace, []):
            if absent in self._users:
                found.append((self._users[absent], f"stands in for {self._users[absent].get_username()}, who is away"))
        return found
