"""Who is away lets somebody else decide meanwhile what lets itself be handed on (spec 1.2, `approvers.delegate`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import transaction

from approvals import audit, people, policy
from approvals.models import Absence
from statestore.clock import DbNow, now
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid, NotAllowed, NotPossible
from workflows.models import WORKSPACE
from workflows.runs import check_text
from workflows.times import rfc3339


def set_absence(
    actor: Actor,
    *,
    substitute: str,
    starts_at: datetime,
    ends_at: datetime,
    user: str | None = None,
    workspace: str = WORKSPACE,
) -> Absence:
    """From `starts_at` until `ends_at` the user `substitute` may decide in the place of the actor, or of `user`.

    For somebody else only a superuser does this. It goes one step: a substitute who is away passes nothing on.

    Raises NotAllowed, and Invalid for users that cannot, for times that are over or the wrong way round, and where an
    absence in this time is there already. A refusal changes nothing.
    """
    away = _absent(actor, user)
    other = _substitute(away, substitute)
    moment = now()
    if ends_at <= starts_at:
        raise _unfit("ends_at", "the end must come after the beginning")
    if ends_at <= moment:
        raise _unfit("ends_at", "this time is over already")
    with transaction.atomic():
        # One at a time for each person: the next one waits here, and then sees this absence.
        get_user_model().objects.select_for_update(no_key=True).get(pk=away.pk)
        overlapping = Absence.objects.filter(
            workspace=workspace, user=away.pk, starts_at__lt=ends_at, ends_at__gt=starts_at
        )
        there = overlapping.order_by("starts_at").select_related("substitute").first()
        if there is not None:
            name = there.substitute.get_username()
            until = f"{there.starts_at:%Y-%m-%d %H:%M} to {there.ends_at:%Y-%m-%d %H:%M} UTC"
            raise _unfit("starts_at", f"there is an absence already, with {name} from {until}; end that first")
        absence = Absence.objects.create(
            workspace=workspace,
            user_id=away.pk,
            substitute_id=other.pk,
            starts_at=starts_at,
            ends_at=ends_at,
            created_at=moment,
        )
        _note("away", absence, actor)
    return absence


def end_absence(actor: Actor, absence_id: int, *, workspace: str = WORKSPACE) -> None:
    """The absence is over now; one that has not begun never was.

    Raises NotAllowed unless it is the actor's own, or the actor is a superuser; NotPossible when it is over already.
    """
    policy.need(policy.may_decide_at_all(actor))
    absence = Absence.objects.select_related("user", "substitute").filter(workspace=workspace, pk=absence_id).first()
    if absence is None or (absence.user_id != actor.user_id and not _is_superuser(actor)):
        # The same for one that is not there: whose absences there are is nobody else's to find out.
        raise NotAllowed("this is no absence of yours", rule="one's own absence")
    with transaction.atomic():
        going_on = Absence.objects.filter(pk=absence.pk, ends_at__gt=DbNow())
        ended = going_on.filter(starts_at__lte=DbNow()).update(ends_at=DbNow())
        dropped, _ = (0, {}) if ended else going_on.delete()
        if not ended and not dropped:
            raise NotPossible("this absence is over already", status="over")
        _note("back", absence, actor)


def mine(user_id: int, workspace: str = WORKSPACE) -> list[Absence]:
    """The user's own absences that are not over, the next one first."""
    return list(_not_over(workspace).filter(user=user_id))


def everybodys(workspace: str = WORKSPACE) -> list[Absence]:
    """All absences that are not over, for a superuser."""
    return list(_not_over(workspace))


def standing_in(user_id: int, workspace: str = WORKSPACE) -> list[Absence]:
    """Absences that are not over, in which the user stands in for somebody."""
    return list(_not_over(workspace).filter(substitute=user_id))


def _not_over(workspace: str) -> Any:
    there = Absence.objects.filter(workspace=workspace, ends_at__gt=DbNow()).select_related("user", "substitute")
    return there.order_by("starts_at", "id")


def _absent(actor: Actor, name: str | None) -> AbstractUser:
    policy.need(policy.may_decide_at_all(actor))
    own = people.active_user(actor.user_id)
    if own is not None and (name is None or name == own.get_username()):
        return own
    if not _is_superuser(actor) or name is None:
        raise NotAllowed("only a superuser says so for somebody else", rule="one's own absence")
    return _deciding(name, "user")


def _substitute(away: AbstractUser, name: str) -> AbstractUser:
    found = _deciding(name, "substitute")
    if found.pk == away.pk:
        raise _unfit("substitute", "somebody else has to stand in")
    return found


def _deciding(name: str, path: str) -> AbstractUser:
    check_text(name, path)
    users: Any = get_user_model().objects
    found: AbstractUser | None = users.filter(**{get_user_model().USERNAME_FIELD: name}, is_active=True).first()
    if found is None:
        raise _unfit(path, "there is no active user of this name")
    if not found.has_perm(policy.DECIDE):
        raise _unfit(path, f"this user does not hold {policy.DECIDE}; name somebody who does")
    return found


def _is_superuser(actor: Actor) -> bool:
    user = people.active_user(actor.user_id)
    return user is not None and user.is_superuser


def _note(act: str, absence: Absence, actor: Actor) -> None:
    """The proof; no run and no spec belong to it."""
    details = {
        "user": absence.user.get_username(),
        "substitute": absence.substitute.get_username(),
        "starts_at": rfc3339(absence.starts_at),
        "ends_at": rfc3339(absence.ends_at),
    }
    audit.record(
        act,
        workspace=absence.workspace,
        actor=actor,
        run="",
        agent_id="",
        spec_hash="",
        details=jsontext.dumps(details),
    )


def _unfit(path: str, message: str) -> Invalid:
    return Invalid(f"{path}: {message}", [{"path": path, "message": message}])
