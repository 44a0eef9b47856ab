"""Approvals over Slack answer as the slack cases say: a worker posts, a linked member presses, the answer is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from approvals.actors import actor_for_user
from approvals.slack_links import account, link
from tests.conformance import cases, clicking, matching
from tests.conformance.cases import HEAD, Case, known
from tests.conformance.expectations import Outcome, check
from tests.conformance.service import Service
from tests.conformance.stage import Stage

INPUTS = HEAD | {"spec", "env", "model", "http", "calls"}


@pytest.fixture
def jian(transactional_db: None) -> User:
    """Whom the cases call jian: may decide, and is linked to the Slack account that presses."""
    user = User.objects.create(username="jian")
    user.user_permissions.set(Permission.objects.filter(codename="decide"))
    link(account(clicking.TEAM, clicking.MEMBER, "jian"), user, actor=actor_for_user(user, "admin"))
    return user


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in cases.of(cases.SLACK)])
def test_slack_is_answered_as_the_case_says(
    case: Case, folder: Path, service: Service, jian: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(case["id"], case, INPUTS)
    for name, text in case["env"].items():
        monkeypatch.setenv(name, text)
    with Stage(case) as stage:
        # The cases know nothing of a card that is kept up to date beside the answer to the click.
        stage.tools.script[f"POST {clicking.UPDATE}"] = {"json": {"ok": True}}
        (folder / "spec.yaml").write_text(stage.spec, encoding="utf-8")
        for number, line in enumerate(stage.case["calls"]):
            if "slack_click" in line:
                known(f"calls[{number}]", line, {"slack_click", "expect"})
                known(f"calls[{number}].expect", line["expect"], {"status"})
                answer = service.post(clicking.line_of(line["slack_click"], stage.tools))
                matching.equal(f"calls[{number}].expect.status", line["expect"]["status"], answer.status_code)
            else:
                service.play(f"calls[{number}]", line, service.expectations())
        for wanted in stage.case["expect"]["requests_any_order"]:
            clicking.waited(stage.tools, wanted["url"])
        service.stop()
        asked = tuple(request for request in stage.tools.requests if request.url != clicking.UPDATE)
        check(stage.case["expect"], Outcome(requests=asked))
        stage.surprises()
