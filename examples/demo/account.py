"""The demo's user: made once, with the rights of somebody who approves and no others, kept for the next start."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from django.contrib.auth.models import Group, Permission, User
from knox.crypto import hash_token

from approvals.models import ApiToken
from approvals.tokens import create_token

NAME = "demo"
GROUP = "Approvers"
PERMISSIONS = (
    "approvals.view_request",
    "approvals.decide",
    "approvals.view_auditentry",
    "workflows.start_run",
    "workflows.view_run",
    "workflows.operate_run",
)
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is easily taken for another


@dataclass(frozen=True, kw_only=True)
class Account:
    """What lets the newcomer in. `password` is None when it is not known here any more."""

    user: str
    password: str | None
    token: str


def ready(path: Path) -> Account:
    """The account as the database has it now, its password and token kept in `path` for its owner alone."""
    kept = _read(path)
    password = kept.get("password")
    user = User.objects.filter(username=NAME).first()
    if user is None:
        password = password or _new_password()
        user = User.objects.create_user(NAME, password=password, is_staff=True)
        user.groups.add(_group())
    elif password is not None and not user.check_password(password):
        password = None
    token = kept.get("token")
    if not token or not ApiToken.objects.filter(digest=hash_token(token), user=user).exists():
        token = create_token(user, "make demo")
    account = Account(user=NAME, password=password, token=token)
    if kept != asdict(account):
        _write(path, account)
    return account


def _group() -> Group:
    group, new = Group.objects.get_or_create(name=GROUP)
    if new:
        for name in PERMISSIONS:
            app, codename = name.split(".")
            group.permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return group


def _new_password() -> str:
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))


def _read(path: Path) -> dict[str, str]:
    """What an earlier start kept; nothing when there was none, or when the file is no longer what was written."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _write(path: Path, account: Account) -> None:
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(account), file)
    beside.replace(path)
