"""Text gives Slack no orders, secrets are in no message, a button holds a key alone (scenarios 46, 47)."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.models import Notice
from approvals.notices import sender
from approvals.notices.slack_text import escaped, paragraph
from approvals.services import decide
from tests.approvals.policies import written
from tests.conftest import People
from tests.fakes_slack import everything
from tests.surfaces.slack.conftest import CHANNEL, TOKEN, Channel, asking
from tests.workbench import HEAD, acting, to_pause

HOSTILE = (
    "<!channel> <@U123> @here <https://evil.example|Approve here> https://evil.example/x `code` *bold* "
    "\u202eesrever\u202c &amp; ```\nApproved by approver on 2026-11-29 at 10:00 UTC (admin)"
)

# what is drawn is the same on both
pytestmark = pytest.mark.everyday("postgres")


@pytest.mark.django_db(transaction=True)
def test_hostile_text_is_shown_as_typed(channel: Channel, tmp_path: Path, people: People) -> None:
    _, key, card = channel.card(asking(tmp_path), input=HOSTILE)
    decide(key, approved=False, reason=HOSTILE, actor=acting(people.approver))
    sender.send_due()
    for body in (card, channel.slack.updates[-1]):
        said = everything(body)
        assert "<!channel>" not in said
        assert "<@U123>" not in said
        assert "<https://evil.example" not in said
        assert "\u202e" not in said
        assert "\\u202eesrever" in json.dumps(body, ensure_ascii=False).replace("\\\\", "\\")
        assert (body["parse"], body["link_names"]) == ("none", False)
        asked = body["blocks"][0]["text"]
        assert (asked["type"], asked["emoji"]) == ("plain_text", False)
        assert asked["text"].startswith("Really &lt;!channel&gt; &lt;@U123&gt; @here &lt;https://evil.example|")
        assert "`code` *bold*" in asked["text"]
    assert (card["unfurl_links"], card["unfurl_media"]) == (False, False)


@pytest.mark.django_db(transaction=True)
def test_the_verdict_stands_in_a_block_that_no_text_gets_into(channel: Channel, tmp_path: Path, people: People) -> None:
    _, key, card = channel.card(asking(tmp_path), input=HOSTILE)
    assert "kampong_verdict" not in everything(card)
    decide(key, approved=False, actor=acting(people.approver))
    sender.send_due()
    blocks = channel.slack.updates[-1]["blocks"]
    (verdict,) = [block for block in blocks if block.get("block_id") == "kampong_verdict"]
    assert verdict["type"] == "context"
    assert verdict["elements"][0]["text"].startswith("Rejected by approver on ")
    assert all("\n" not in one["text"] for one in verdict["elements"])


def test_innocent_text_is_mrkdwn_and_all_else_plain() -> None:
    assert paragraph("Reply to refund & <more>?") == {
        "type": "mrkdwn",
        "text": "Reply to refund &amp; &lt;more&gt;?",
        "verbatim": True,
    }
    for text in (
        "*b*",
        "a_b",
        "`c`",
        "~d~",
        "> quoted",
        "a\n>b",
        ":smile:",
        "x@y.z",
        "#general",
        "http://x",
        "www.x.y",
        "",
    ):
        assert paragraph(text)["type"] == "plain_text", text


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_escaping_never_cuts_an_entity_and_keeps_the_limit(text: str, limit: int) -> None:
    found = escaped(text, limit)
    assert len(found.encode("utf-16-le", "surrogatepass")) // 2 <= limit
    assert "<" not in found
    assert ">" not in found
    rest = found.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in rest


@pytest.mark.django_db(transaction=True)
def test_a_large_payload_is_clipped_and_no_part_of_it_is_in_a_button(channel: Channel, tmp_path: Path) -> None:
    _, key, card = channel.card(asking(tmp_path), input="&" * 900_000 + "secret@example.org")
    assert len(everything(card)) < 10_000
    for block in card["blocks"]:
        assert len(block.get("text", {}).get("text", "")) <= 3000
    (buttons,) = [block for block in card["blocks"] if block["type"] == "actions"]
    assert [json.loads(one["value"]) for one in buttons["elements"]] == [{"runId": key}] * 2
    assert [(one["action_id"], one.get("style")) for one in buttons["elements"]] == [
        ("kampong_approve", "primary"),
        ("kampong_reject", "danger"),
    ]


@pytest.mark.django_db(transaction=True)
def test_the_card_says_what_will_run_who_decides_and_how_long(channel: Channel, tmp_path: Path) -> None:
    text = (
        HEAD.replace('"1.1"', '"1.2"').format(agent_id="clerk")
        + f"""\
  approval_notifier: {CHANNEL}
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "http://127.0.0.1:9/pay"
      headers: {{Authorization: "Bearer ${{PAY_TOKEN}}"}}
      approval: {{approvers: {{groups: [finance], four_eyes: true}}, expires_in: 2d}}
      body: {{json: {{amount: 120, lines: [a, b]}}}}
  workflow:
    - {{step: pay, type: tool, tool: pay}}
"""
    )
    _, _, card = channel.card(written(tmp_path, text))
    said = everything(card)
    for part in (
        "method: POST",
        "url: http://127.0.0.1:9/pay",
        "headers Authorization: Bearer ${PAY_TOKEN}",
        "amount: 120",
        "members of finance",
        "not whoever started the run",
        "time left: 1 day 23 hours",
        "<https://kampong.example.org/desk/admin/approvals/approvalrequest/",
        "nobody of members of finance",
    ):
        assert part in said, part


@pytest.mark.django_db(transaction=True)
def test_no_secret_is_in_any_message_row_or_log(
    channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PAY_TOKEN", "canary-of-pay")
    channel.slack.script["POST https://slack.com/api/chat.postMessage"] = [
        {"status": 500, "text": f"echo {TOKEN}"},
        {"json": {"ok": False, "error": TOKEN}},
    ]
    to_pause(asking(tmp_path))
    sender.send_due()
    Notice.objects.update(due_at="2020-01-01T00:00:00Z")
    sender.send_due()
    notice = Notice.objects.get()
    assert notice.status == "failed"
    told = everything([request.body.decode() for request in channel.slack.requests]) + caplog.text
    told += everything({name: str(value) for name, value in vars(notice).items()})
    assert TOKEN not in told
    assert "canary-of-pay" not in told
    assert {request.header("authorization") for request in channel.slack.requests} == {f"Bearer {TOKEN}"}
