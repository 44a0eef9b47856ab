"""What a checker said when it asked a person is told to that person wherever they read of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.models import Notice
from approvals.notices.mail_text import letter_of
from tests.approvals.policies import ANSWERS, a_pay
from tests.fakes_slack import everything
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import command
from tests.surfaces.slack.conftest import CHANNEL, Channel

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_checkers_words_are_on_the_card_in_the_mail_and_at_the_terminal(channel: Channel, tmp_path: Path) -> None:
    notify = f"notify: [{CHANNEL}, {{type: email, to: [desk@house.test]}}]"
    with FakeTools(ANSWERS) as tools:
        _, key, card = channel.card(a_pay(tmp_path, f"auto: {{check: execute_tool(look)}}, {notify}", url=tools.url))
    assert "what its rules said: look at the sum" in everything(card)
    notice = Notice.objects.select_related("request__run").get(channel="email")
    assert notice.request is not None
    letter = letter_of(notice, notice.request, link="https://house.test/x", to_viewer=True)
    assert "look at the sum" in letter.text
    assert "look at the sum" in letter.html
    assert "look at the sum" not in letter_of(notice, notice.request, link="https://house.test/x", to_viewer=False).text
    shown = command("approvals", "show", key, "--as", "approver")
    assert "look at the sum" in shown.out
