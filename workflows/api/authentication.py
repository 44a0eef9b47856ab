"""Who calls: a Django session, `Authorization: Bearer TOKEN`, or HTTP Basic with the token as password (design 5.2).

The user name of HTTP Basic is not looked at: the token alone says whose it is. A header that is there decides; a
wrong token is not made good by a session beside it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from knox.crypto import hash_token
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from approvals.models import ApiToken
from statestore.clock import DbNow
from workflows.actors import Actor, Surface
from workflows.errors import NotAllowed, NotAuthenticated

SIGN_IN = "sign in, or send an API token: Authorization: Bearer TOKEN"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """An active user, and the token that proved it (None: a session)."""

    user: AbstractUser
    token: ApiToken | None = None

    def actor(self, surface: Surface = "api") -> Actor:
        """This caller as the one who acts."""
        detail = f"token {self.token.name}".strip() if self.token is not None else "session"
        return Actor(
            label=self.user.get_full_name() or self.user.get_username(),
            surface=surface,
            user_id=self.user.pk,
            detail=detail,
        )


def caller_of(request: HttpRequest) -> Caller:
    """The caller; NotAuthenticated when there is none, NotAllowed for a session that a foreign page used."""
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if header:
        return _by_token(_token_in(header))
    user = request.user
    if not isinstance(user, AbstractUser) or not user.is_active:
        raise NotAuthenticated(SIGN_IN)
    _check_csrf(request)
    return Caller(user=user)


def _token_in(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    credentials = rest.strip()
    if scheme.lower() == "bearer" and credentials:
        return credentials
    if scheme.lower() == "basic":
        try:
            _, colon, password = base64.b64decode(credentials, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, ValueError):
            colon, password = "", ""
        if colon and password:
            return password
    raise NotAuthenticated(f"the Authorization header holds no token; {SIGN_IN}")


def _by_token(token: str) -> Caller:
    """Found by its digest: what is compared is no secret, so the time that it takes tells nothing."""
    try:
        digest = hash_token(token)
    except UnicodeEncodeError:
        digest = ""
    found = _live_tokens().filter(digest=digest).select_related("user").first()
    if found is None or not isinstance(found.user, AbstractUser) or not found.user.is_active:
        raise NotAuthenticated(f"this token is not known, has expired, or its user was deactivated; {SIGN_IN}")
    return Caller(user=found.user, token=found)


def _live_tokens() -> Any:
    return ApiToken.objects.filter(Q(expiry__isnull=True) | Q(expiry__gt=DbNow()))


class _Csrf(CsrfViewMiddleware):
    """Says why instead of answering."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        raise NotAllowed(f"CSRF: {reason}", rule="a request with a session needs the CSRF token")


def _check_csrf(request: HttpRequest) -> None:
    """As Django's middleware does for its own forms; our views are exempt there, because tokens need none."""

    def no_answer(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    check = _Csrf(no_answer)
    check.process_request(request)
    check.process_view(request, no_answer, (), {})


class Credentials(BaseAuthentication):
    """`caller_of` for views of the REST framework: `request.user` is the user, `request.auth` the Caller."""

    def authenticate(self, request: Request) -> tuple[AbstractUser, Caller]:
        caller = caller_of(request._request)
        return caller.user, caller


# Permissions -------------------------------------------------------------------------------------------------


def need_permission(caller: Caller, permission: str) -> None:
    """NotAllowed, naming the permission, unless the caller holds it. Asked before any look-up."""
    if not caller.user.has_perm(permission):
        rule = f"the permission {permission} is needed; ask an administrator for it"
        raise NotAllowed(rule, rule=rule)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What must still be true of somebody who keeps a stream open."""

    user_id: int
    token_digest: str | None
    permission: str


def standing(caller: Caller, permission: str) -> Standing:
    """What to ask again about this caller."""
    digest = caller.token.digest if caller.token is not None else None
    return Standing(user_id=caller.user.pk, token_digest=digest, permission=permission)


def still_standing(asked: Iterable[Standing]) -> set[Standing]:
    """Those whose user is active and allowed, and whose token is still there."""
    wanted = set(asked)
    users = {
        user.pk: user
        for user in get_user_model().objects.filter(pk__in={one.user_id for one in wanted}, is_active=True)
    }
    digests = {one.token_digest for one in wanted if one.token_digest is not None}
    tokens = set(_live_tokens().filter(digest__in=digests).values_list("digest", flat=True)) if digests else set()
    return {
        one
        for one in wanted
        if (user := users.get(one.user_id)) is not None
        and (one.token_digest is None or one.token_digest in tokens)
        and user.has_perm(one.permission)
    }
