"""One act in a process of its own, so that a test can kill or stop it: `advance RUN`, `decide KEY USER yes|no`."""

from __future__ import annotations

import os
import sys

import django


def main(act: str, *words: str) -> int:
    """Do the act; a refusal prints its code and exits 2."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()

    from django.contrib.auth.models import User

    from approvals.actors import actor_for_user
    from approvals.services import decide
    from workflows.advance import advance
    from workflows.errors import Refusal

    try:
        if act == "advance":
            advance("default", words[0])
        else:
            actor = actor_for_user(User.objects.get(username=words[1]), "cli")
            decide(words[0], approved=words[2] == "yes", actor=actor)
    except Refusal:
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
