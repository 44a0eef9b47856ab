"""What did not leave is seen in the admin, with the reason, and can be tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from approvals.models import Notice
from approvals.notices import sender
from tests.conftest import People, allow
from tests.surfaces.slack.conftest import TOKEN, Channel, asking
from tests.workbench import to_pause

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/approvals/notice/"


def failed(channel: Channel, tmp_path: Path) -> Notice:
    channel.slack.script["POST https://slack.com/api/chat.postMessage"] = [
        {"json": {"ok": False, "error": "channel_not_found"}},
        {"json": {"ok": True, "channel": "C1", "ts": "1.1"}},
    ]
    to_pause(asking(tmp_path))
    sender.send_due()
    return Notice.objects.get()


def test_a_failed_notice_is_listed_with_its_reason_and_tried_again(
    channel: Channel, tmp_path: Path, people: People, client: Client
) -> None:
    notice = failed(channel, tmp_path)
    client.force_login(allow(people.operator, "approvals.view_notice"))
    listed: Any = client.get(LIST)
    page = listed.content.decode()
    for part in ("channel_not_found", "#approvals", "${SLACK_BOT_TOKEN}", "clerk: sign"):
        assert part in page
    assert TOKEN not in page
    one: Any = client.get(f"{LIST}{notice.pk}/change/")
    assert "channel_not_found" in one.content.decode()
    again: Any = client.post(LIST, {"action": "try_again", "_selected_action": [notice.pk]}, follow=True)
    assert "1 of 1 notices are tried again" in again.content.decode()
    assert sender.send_due() == 1
    again = client.post(LIST, {"action": "try_again", "_selected_action": [notice.pk]}, follow=True)
    assert "0 of 1 notices" in again.content.decode()


def test_looking_is_not_enough_to_try_again(channel: Channel, tmp_path: Path, people: People, client: Client) -> None:
    notice = failed(channel, tmp_path)
    client.force_login(people.stranger)
    assert client.get(LIST).status_code == 403
    client.force_login(allow(people.stranger, "approvals.view_notice"))
    client.post(LIST, {"action": "try_again", "_selected_action": [notice.pk]})
    notice.refresh_from_db()
    assert notice.status == "failed"
