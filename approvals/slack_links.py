"""Which Slack account decides as which Django user: by that user's own word, or by an administrator's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.core import signing
from django.db import transaction

from approvals import audit
from approvals.models import SlackUser
from statestore.clock import now
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.errors import Invalid, Refusal
from workflows.models import WORKSPACE

SECONDS = 15 * 60
_SALT = "approvals.slack.link"
_ID = re.compile(r"[A-Za-z0-9]{1,32}")
NAME_LIMIT = 200


class LinkOver(Refusal):
    """The link is older than 15 minutes, or not one of ours. Press a button in Slack again for a fresh one."""

    code = "not_possible"


@dataclass(frozen=True, kw_only=True)
class Account:
    """A Slack account as Slack names it; `name` is for people and proves nothing."""

    team: str
    slack_id: str
    name: str = ""

    @property
    def detail(self) -> str:
        """How the audit names it."""
        return f"{self.team}/{self.slack_id}"


def account(team: str, slack_id: str, name: str = "") -> Account:
    """Invalid for what is no id of Slack's."""
    for path, text in (("team", team), ("user", slack_id)):
        if not _ID.fullmatch(text):
            message = "a Slack id is letters and digits, such as T024BE7LD"
            raise Invalid(f"{path}: {message}", [{"path": path, "message": message}])
    return Account(team=team, slack_id=slack_id, name=name[:NAME_LIMIT])


def user_of(account: Account, workspace: str = WORKSPACE) -> AbstractUser | None:
    """The Django user as whom this account decides, active or not."""
    found = SlackUser.objects.select_related("user").filter(
        workspace=workspace, team=account.team, slack_id=account.slack_id
    )
    link = found.first()
    return None if link is None else link.user


def token_for(account: Account) -> str:
    """What a link to the page carries: signed, good for 15 minutes."""
    facts = {"team": account.team, "id": account.slack_id, "name": account.name}
    return signing.dumps(facts, salt=_SALT, compress=True)


def account_in(token: str) -> Account:
    """The account that a link names. LinkOver for one that is too old or was changed."""
    try:
        facts = signing.loads(token, salt=_SALT, max_age=SECONDS)
    except signing.SignatureExpired as error:
        raise LinkOver("this link was good for 15 minutes; press a button in Slack again for a fresh one") from error
    except signing.BadSignature as error:
        raise LinkOver("this link is not one of ours; press a button in Slack again for a fresh one") from error
    return Account(team=facts["team"], slack_id=facts["id"], name=facts["name"])


def link(account: Account, user: Any, *, actor: Actor, workspace: str = WORKSPACE) -> SlackUser:
    """From now on this account decides as this user, and no longer as whomever it did before."""
    with transaction.atomic():
        linked, _ = SlackUser.objects.update_or_create(
            workspace=workspace,
            team=account.team,
            slack_id=account.slack_id,
            defaults={"user": user, "name": account.name, "linked_at": now()},
        )
        _note("link", linked, actor)
    return linked


def unlink(linked: SlackUser, *, actor: Actor) -> bool:
    """The account decides as nobody any more; False when somebody else took the link away before."""
    with transaction.atomic():
        if SlackUser.objects.filter(pk=linked.pk).delete()[0] != 1:
            return False
        _note("unlink", linked, actor)
    return True


def _note(act: str, linked: SlackUser, actor: Actor) -> None:
    facts = {"team": linked.team, "slackId": linked.slack_id, "name": linked.name, "user": linked.user.get_username()}
    audit.record(
        act,
        actor=actor,
        run="",
        agent_id="",
        spec_hash="",
        workspace=linked.workspace,
        details=jsontext.dumps(facts),
    )
