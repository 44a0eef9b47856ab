"""An answer goes to Slack, and nowhere else, whatever address came with the click."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.slack.replies import is_allowed
from tests.fakes_tools import FakeTools
from tests.surfaces.slack.conftest import Channel, asking

ALLOWED = (
    "https://hooks.slack.com/actions/T1/2/3",
    "https://hooks.slack.com:443/actions/T1/2/3",
    "https://hooks.slack-gov.com/actions/x",
    "https://slack.com/x",
)
REFUSED = (
    "http://hooks.slack.com/actions/x",
    "https://hooks.slack.com:8443/x",
    "https://hooks.slack.com.evil.example/x",
    "https://evilslack.com/x",
    "https://evil.example/hooks.slack.com",
    "https://hooks.slack.com@evil.example/x",
    "https://evil.example@hooks.slack.com/x",
    "https://127.0.0.1/x",
    "http://127.0.0.1:8080/x",
    "http://169.254.169.254/latest/meta-data",
    "http://localhost/x",
    "file:///etc/passwd",
    "ftp://hooks.slack.com/x",
    "//hooks.slack.com/x",
    "hooks.slack.com/x",
    "https://",
    "https://[::1/x",
    "https://hooks.slack.com:port/x",
    "",
)


@pytest.mark.parametrize("url", ALLOWED)
def test_slack_is_answered(url: str) -> None:
    assert is_allowed(url)


@pytest.mark.parametrize("url", REFUSED)
def test_nobody_else_is(url: str) -> None:
    assert not is_allowed(url)


def test_what_stands_in_slacks_place_is_answered_at_its_own_port_only(settings: Settings) -> None:
    settings.KAMPONG_SLACK_API_URL = "http://127.0.0.1:9000/api"
    assert is_allowed("http://127.0.0.1:9000/hooks/x")
    assert not is_allowed("http://127.0.0.1:9001/hooks/x")
    assert not is_allowed("https://127.0.0.1:9000/hooks/x")


@pytest.mark.django_db(transaction=True)
def test_a_click_with_another_address_decides_and_posts_nothing_there(
    channel: Channel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, _, card = channel.card(asking(tmp_path))
    with FakeTools() as elsewhere:
        channel.approver.extra["response_url"] = f"{elsewhere.url}/steal"
        with caplog.at_level(logging.WARNING):
            assert channel.approver.press(card).status_code == 200
        time.sleep(0.2)
        assert elsewhere.requests == []
    assert "is not one of Slack's" in caplog.text
    assert "steal" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_redirect_is_not_followed(channel: Channel, tmp_path: Path) -> None:
    _, _, card = channel.card(asking(tmp_path))
    with FakeTools() as elsewhere:
        channel.slack.script["POST https://slack.com/hooks/r"] = {
            "status": 302,
            "headers": {"Location": f"{elsewhere.url}/steal"},
        }
        channel.approver.press(card)
        channel.replies()
        time.sleep(0.2)
        assert elsewhere.requests == []
