"""A message that waits for a person is shown as what it is: where it goes, and every line of it (semantics 15)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.admin import words
from approvals.models import ApprovalRequest
from tests.conftest import People
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import QUEUE, decide_url
from tests.workbench import to_pause
from workflows import beats

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(people.approver)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("tell", ["Posts to the Slack channel #ops with the tool “tell”", "slack_post_message", "${CHAT_TOKEN}"]),
        ("write", ["Sends a mail to Bo Müller &lt;bo@example.org&gt; with the tool", "Parcel 118", "${MAIL_TOKEN}"]),
        ("part", ["Posts to the Slack channel #ops", "kampong/slack@1.0.0", "post_message", "${CHAT_TOKEN}"]),
    ],
)
def test_the_page_says_where_to_and_shows_all_of_the_text(
    approver: Client, tmp_path: Path, tool: str, said: list[str]
) -> None:
    _, key = to_pause(scenes.telling(tmp_path, tool), input=scenes.LETTER)
    page = approver.get(decide_url(key)).content.decode()
    for text in (*said, "It was promised for Monday.\nNow it is said"):
        assert text in page, text


def test_what_a_message_holds_is_text_and_what_cannot_be_seen_is_written_out(approver: Client, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> \u202eevil\u200b ”, then nothing.\r\nline"
    _, key = to_pause(scenes.telling(tmp_path, "tell"), input=hostile)
    page = approver.get(decide_url(key)).content.decode()
    assert "<script>alert" not in page
    assert "\\u202eevil\\u200b" in page
    assert "then nothing.\nline" in page


def test_a_long_message_opens(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(scenes.telling(tmp_path, "write"), input="x" * 10_000)
    page = approver.get(decide_url(key)).content.decode()
    assert "<details" in page
    assert page.count("x" * 10_000) == 2  # under its row, and in the JSON


def test_deciding_many_names_each_message(approver: Client, tmp_path: Path) -> None:
    keys = [to_pause(scenes.telling(tmp_path, tool), input=scenes.LETTER)[1] for tool in ("tell", "write", "part")]
    picked = [ApprovalRequest.objects.get(key=key).pk for key in keys]
    page = approver.post(f"{QUEUE}bulk/", {"act": "approve", "pick": picked}).content.decode()
    assert page.count("Post to the Slack channel #ops: The parcel 118 is late It was promised") == 2
    assert "Send a mail to Bo Müller &lt;bo@example.org&gt;: Parcel 118" in page


def test_a_token_that_no_worker_has_is_told_before(
    approver: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [decide_url(to_pause(scenes.telling(tmp_path, tool))[1]) for tool in ("tell", "part")]
    for page in pages:
        assert "No running worker has <code>CHAT_TOKEN</code>" in approver.get(page).content.decode()
    monkeypatch.setenv("CHAT_TOKEN", "xoxb-canary")
    beats.beat()
    for page in pages:
        shown = approver.get(page).content.decode()
        assert "No running worker" not in shown
        assert "xoxb-canary" not in shown


@pytest.mark.parametrize(
    "action",
    [
        {"action": "component", "tool": "t", "use": "gone/away@2.0.0", "op": "x", "with": {"a": 1}},
        {"action": "component", "tool": "t", "use": "kampong/slack@1.0.0", "op": "gone", "with": {}},
        {"action": "http_request", "tool": "t", "method": "GET", "url": "https://t.test", "text": "x"},
        {"action": "component", "tool": "t", "use": "kampong/slack@1.0.0", "op": "post_message"},
        {"action": "gmail_send", "tool": "t"},
        {"action": "of a later version"},
        [],
        None,
    ],
)
def test_what_is_no_message_we_know_is_a_table_all_the_same(action: object) -> None:
    assert words.message_of(action) is None
    words.rows_of("tool", action)
