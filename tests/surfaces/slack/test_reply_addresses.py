"""An answer goes to Slack, and nowhere else, whatever address came with the click."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.slack import replies
from approvals.slack.replies import is_allowed
from tests.fakes_tools import FakeTools
from tests.surfaces.api.conftest import until
from tests.surfaces.slack.conftest import Channel, asking
from workflows.draining import draining

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
        # It is said where the answer would have been handed to the pool, which it never was.
        assert elsewhere.requests == []
    assert "is not one of Slack's" in caplog.text
    assert "steal" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_redirect_is_not_followed(channel: Channel, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, _, card = channel.card(asking(tmp_path))
    with FakeTools() as elsewhere:
        channel.slack.script["POST https://slack.com/hooks/r"] = {
            "status": 302,
            "headers": {"Location": f"{elsewhere.url}/steal"},
        }
        with caplog.at_level(logging.WARNING):
            channel.approver.press(card)
            until(lambda: "could not be posted: HTTP 302" in caplog.text)
        assert elsewhere.requests == []


def test_a_process_that_ends_posts_what_was_just_asked_and_drops_what_had_to_wait(settings: Settings) -> None:
    with FakeTools({"POST /hooks/x": {"json": {}}}) as slack:
        settings.KAMPONG_SLACK_API_URL = f"{slack.url}/api"
        posted = []
        draining.set()
        try:
            for waited in (replies.TIMEOUT_SECONDS + 1, 0):
                replies._room.acquire()
                replies._post_all(f"{slack.url}/hooks/x", [{"text": "yes"}], time.monotonic() - waited)
                posted.append(len(slack.requests))
        finally:
            draining.clear()
        assert posted == [0, 1]
