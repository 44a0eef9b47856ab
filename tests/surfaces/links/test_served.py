"""The whole way: a run pauses in `serve`, the mail leaves by EMAIL_URL, its link opens where `serve` listens."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from approvals.models import AuditEntry
from tests.approvals.policies import a_sign
from tests.conftest import People, Processes
from tests.fakes_mail import FakeMail, part
from tests.surfaces.serve.conftest import Served, until
from tests.workbench import begin
from workflows.management.web import address_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[FakeMail]:
    mail = FakeMail()
    mail.start()
    yield mail
    mail.stop()


def test_a_mail_out_of_serve_is_decided_by_its_link(
    tmp_path: Path, manage: Processes, people: People, server: FakeMail
) -> None:
    spec = a_sign(tmp_path, "notify: [{type: email, to: [approver@example.org]}]")
    variables = {"EMAIL_URL": f"smtp://127.0.0.1:{server.port}", "DEFAULT_FROM_EMAIL": "desk@example.org"}
    served = Served(manage.start("serve", "--port", "0", "--workers", "1", str(spec.path), env=variables))
    begin(spec)
    until(lambda: server.mails)
    (mail,) = server.mails
    assert mail["From"] == "desk@example.org"
    (link,) = re.findall(r"https?://\S+", part(mail, "plain"))
    assert link.startswith(f"{served.url}/approvals/link/")
    with urlopen(link, timeout=30) as answer:
        page = answer.read().decode()
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("csrfmiddlewaretoken", "digest")}
    sent = {name: one[1] for name, one in found.items() if one} | {"verdict": "reject", "confirm": "yes"}
    headers = {"Cookie": cookie, "Origin": served.url}
    with urlopen(Request(link, urlencode(sent).encode(), headers), timeout=30) as answer:
        assert "This request is over: rejected by approver" in answer.read().decode()
    entry = AuditEntry.objects.get(act="decide")
    assert (entry.surface, entry.actor_detail) == ("link", "approver@example.org")
    code, _, err = served.end()
    assert code == 0
    assert link.rsplit("/", 1)[1] not in err


@pytest.mark.parametrize(
    ("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]")]
)
def test_an_address_that_means_every_one_is_told_as_this_machines_own(host: str, shown: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert address_of(listener, host) == f"http://{shown}:{listener.getsockname()[1]}"
