"""The filters of the queue, the same for the admin, for HTTP and for a terminal, and the same on every database.

A filter chooses among what a person may see anyway; who may decide stays the policy's to say.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, Group
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Concat, Substr
from django.db.models.lookups import Lookup
from django.db.models.sql.compiler import SQLCompiler

from approvals.models import Absence, ApprovalRequest, Audience, Delegation, RequestStatus, Vote
from approvals.policy import DECIDE
from statestore.clock import DbNow

#: Characters of a request's reason that are searched: enough for a person's words, whatever an agent wrote.
SEARCHED = 2000

Requests = QuerySet[ApprovalRequest]


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """What to look for; what is empty is not asked. `mine` is the user for whom it has to wait (`waits_for`).

    `q` is found in the agent, the step or the first 2,000 characters of what is asked, whichever way A to Z are
    written; a whole key finds its request.
    """

    agent: str = ""
    run: str = ""
    step: str = ""
    group: str = ""
    mine: AbstractUser | None = None
    older_than: timedelta | None = None
    expires_within: timedelta | None = None
    q: str = ""


def narrowed(found: Requests, by: Narrowing) -> Requests:
    """Those among the requests that fit every filter."""
    if by.agent:
        found = found.filter(agent_id=by.agent)
    if by.run:
        found = found.filter(run__uuid=by.run)
    if by.step:
        found = found.filter(step=by.step)
    if by.group:
        found = found.filter(_addressed(Q(kind="group", name=by.group)) | _escalated([by.group]))
    if by.mine is not None:
        found = waits_for(found, by.mine)
    if by.older_than is not None:
        found = found.filter(created_at__lte=DbNow(-by.older_than.total_seconds()))
    if by.expires_within is not None:
        found = found.filter(expires_at__lte=DbNow(by.expires_within.total_seconds()))
    if by.q.strip():
        found = _with_words(found, by.q.strip())
    return found


# Whom it waits for -------------------------------------------------------------------------------------------


def waits_for(found: Requests, user: AbstractUser) -> Requests:
    """Those that `Person.may` lets this user decide, and that still lack the user's own approval.

    Rows of a process of the version before, which has no audience, are taken for everybody's.
    """
    if not user.is_active or not user.has_perm(DECIDE):
        return found.none()
    return found.filter(_named(user) | _stands_in(user)).exclude(Exists(_standing_vote(user)))


def _named(user: AbstractUser) -> Q:
    """What is addressed to this user, by name, by a group or because it is addressed to nobody in particular."""
    groups = Group.objects.filter(user=user.pk).values("name")
    own = Q(kind="user", name=user.get_username()) | Q(kind="group", name__in=groups)
    return _addressed(own) | ~_addressed(Q(kind__in=("user", "group"))) | _escalated(groups)


def _escalated(groups: Any) -> Q:
    """What went on to one of these groups by now, because it waits for so long."""
    return Q(escalate_at__lte=DbNow()) & _addressed(Q(kind="later", name__in=groups))


def _addressed(to: Q) -> Q:
    return Q(Exists(Audience.objects.filter(to, request=OuterRef("pk"))))


def _stands_in(user: AbstractUser) -> Q:
    """What was handed to this user, and what waits for those who are away: as far as it lets itself be handed on."""
    handed = Delegation.objects.filter(to_user_id=user.pk, request__status=RequestStatus.OPEN)
    away = Absence.objects.filter(substitute=user.pk, starts_at__lte=DbNow(), ends_at__gt=DbNow())
    pairs = set(
        handed.values_list("from_user_id", Value("", output_field=TextField())).union(
            away.values_list("user_id", "workspace")
        )
    )
    users: Any = get_user_model().objects
    givers = users.filter(pk__in={pk for pk, _ in pairs}, is_active=True) if pairs else ()
    found = Q(pk__in=[])
    for giver in givers:
        if not giver.has_perm(DECIDE):
            continue
        given = Exists(Delegation.objects.filter(request=OuterRef("pk"), to_user_id=user.pk, from_user_id=giver.pk))
        absent = Q(workspace__in=[workspace for pk, workspace in pairs if pk == giver.pk and workspace])
        found |= _named(giver) & (Q(given) | absent)
    return found & _addressed(Q(kind="proxy"))


def _standing_vote(user: AbstractUser) -> QuerySet[Vote]:
    """The user's vote, unless another action or other answers came after it (`policy.standing_votes`)."""
    given = Vote.objects.filter(request=OuterRef("pk"), digest=OuterRef("digest"), user_id=user.pk)
    newest = Vote.objects.filter(request=OuterRef("request"), digest=OuterRef("digest")).order_by("-id")
    return given.filter(answers=Subquery(newest.values("answers")[:1]))


# Words -------------------------------------------------------------------------------------------------------


def is_key(text: str) -> bool:
    """Whether this text can be a key at all."""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        character in string.hexdigits for part in parts for character in part
    )


def _with_words(found: Requests, text: str) -> Requests:
    if is_key(text):
        return found.filter(key=text)
    parts = (F("agent_id"), Value("\n"), F("step"), Value("\n"), Substr("reason", 1, SEARCHED))
    words = Concat(*parts, output_field=TextField())
    return found.filter(Holds(words, text))


_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Holds(Lookup[bool]):
    """Whether a text holds another, A to Z in either case and every other character as it is.

    What Django's own `icontains` finds depends on the database, and on Postgres on its locale.
    """

    lookup_name = "holds"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, tuple[Any, ...]]:
        left, parameters = self.process_lhs(compiler, connection)
        wanted = str(self.rhs).translate(_SMALL)
        pattern = "%" + "".join(f"\\{one}" if one in "\\%_" else one for one in wanted) + "%"
        if connection.vendor == "postgresql":
            left = f'lower(({left}) COLLATE "C")'
        return f"{left} LIKE %s ESCAPE '\\'", (*parameters, pattern)
