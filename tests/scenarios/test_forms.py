"""Forms that no browser sends, to every page that takes one: refused in words, and nothing happened (scenario 51)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from approvals import slack_links
from approvals.models import ApprovalRequest, SlackUser
from approvals.signedlinks import token_for
from kampong.security import Refused
from tests.conftest import People
from tests.crash.refusing import rows
from tests.surfaces.slack.conftest import Channel, asking
from tests.workbench import to_pause

pytestmark = pytest.mark.django_db(transaction=True)

FORM = "application/x-www-form-urlencoded"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a list": (b"[]", "application/json"),
    "nothing": (b"", FORM),
    "no UTF-8": (b"verdict=\xff\xfe&reason=\xff&confirm=\xff", FORM),
    "NUL": (b"verdict=approve%00&reason=%00&confirm=yes&digest=%00&to=%00", FORM),
    "half a surrogate": (b"verdict=reject&reason=%ED%A0%80", FORM),
    "a thousand fields": ("&".join(f"f{number}=1" for number in range(2000)).encode(), FORM),
    "deep JSON": (b"[" * 100_000, "application/json"),
    "a broken multipart": (b"--x\r\nContent-Disp", "multipart/form-data; boundary=y"),
    "a multipart without boundary": (b"--x", "multipart/form-data"),
    "30 MB": (b"reason=" + b"x" * 30 * 1024 * 1024, FORM),
    "another charset": ("verdict=approve".encode("utf-16"), f"{FORM}; charset=utf-16"),
    "no charset at all": (b"verdict=maybe", f"{FORM}; charset=klingon"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_form_that_is_no_good_changes_nothing(
    what: str, channel: Channel, people: People, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, key = to_pause(asking(tmp_path))
    request = ApprovalRequest.objects.get(key=key)
    account = slack_links.token_for(slack_links.account("T1", "U77", "who"))
    pages = [
        reverse("approval-link", args=[token_for(request, people.approver)]),
        reverse("admin:approvals_approvalrequest_decide", args=[request.pk]),
        reverse("admin:approvals_approvalrequest_bulk"),
        reverse("sign-in"),
    ]
    body, kind = HOSTILE[what]
    before = rows()
    with caplog.at_level(logging.DEBUG):
        for page in pages:
            client = Client(raise_request_exception=False)
            client.force_login(people.approver)
            answer: Any = client.generic("POST", page, body, content_type=kind, CONTENT_TYPE=kind)
            assert answer.status_code < 500, (page, answer.status_code)
    assert rows() == before
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.force_login(people.approver)
    refused: Any = strict.generic("POST", f"/slack/link/{account}", body, content_type=kind, CONTENT_TYPE=kind)
    assert 400 <= refused.status_code < 500
    assert not SlackUser.objects.filter(slack_id="U77").exists()
    for record in caplog.records:
        Refused().filter(record)  # as the handler of the project's own logging does
        assert (record.exc_info, record.levelno < logging.ERROR) == (None, True), record.getMessage()


def test_the_projects_own_handler_writes_a_refusal_as_one_line() -> None:
    held = [handler for handler in logging.getLogger().handlers if any(type(one) is Refused for one in handler.filters)]
    assert len(held) == 1
