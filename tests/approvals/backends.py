"""An authentication backend beside Django's own, as a host project may have."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied


class NotBo(BaseBackend):
    """Whatever others say, bo holds nothing."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        if user_obj.get_username() == "bo":
            raise PermissionDenied
        return False
