"""API tokens: shown once, stored hashed (design 5.2)."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser

from approvals.models import ApiToken


def create_token(user: AbstractBaseUser, name: str = "") -> str:
    """A new token for this user, in clear: it cannot be shown again."""
    _, token = ApiToken.objects.create(user=user, expiry=None, name=name)
    return str(token)
