"""Secrets planted wherever a spec or a caller may put one appear in no table, log, page, event, answer or output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest
from tests.canary.journey import NOTE, Journey
from tests.canary.planted import MARKS, PAYMENTS, SECRETS, SLACK, SPEC, THOUGHTS, TOOLS, UNSENDABLE
from tests.canary.searching import Seen, crawl
from tests.commanding import Terminal
from tests.conftest import Processes
from tests.fakes_models import FakeModels
from tests.fakes_slack import FakeSlack
from tests.fakes_tools import FakeTools
from tests.served import Served, until
from tests.workbench import begin, work, write_spec
from workflows.models import Run, Status
from workflows.runs import newest

# what is written and said is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("sqlite")]


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels({"think": list(THOUGHTS)}) as server:
        yield server


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools(TOOLS) as server:
        yield server


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(SLACK) as server:
        yield server


@pytest.fixture
def everybody(db: None, password_hash: str) -> User:
    """A superuser."""
    return User.objects.create(
        username="lim", password=password_hash, is_staff=True, is_superuser=True, email="lim@example.org"
    )


@pytest.fixture
def journey(
    tmp_path: Path, models: FakeModels, tools: FakeTools, slack: FakeSlack, everybody: User, manage: Processes
) -> Iterator[Journey]:
    """A server and a terminal with the secrets in their environment, logging all they can."""
    folder = tmp_path / "specs"
    folder.mkdir()
    write_spec(folder, SPEC, url=tools.url)
    addresses = {"KAMPONG_OPENAI_API_URL": models.openai_url, "KAMPONG_SLACK_API_URL": slack.api_url}
    addresses |= {"KAMPONG_WEBHOOK_SECRETS": "clerk=HOOK_SECRET"}
    manage.env |= SECRETS | addresses | {"LOG_LEVEL": "DEBUG"}
    terminal = Terminal(manage.env, tmp_path / "terminal")
    journey = Journey(Served(manage, tmp_path, str(folder)), everybody, terminal, slack, Seen())
    yield journey
    journey.end()
    terminal.end()


def pay_at_last(journey: Journey) -> Run:
    """The first run: a failed look, an approval in the admin, five failed payments, each retried, and the end."""
    run = journey.start()
    journey.follow(run)
    journey.retry(journey.failed(run), 0)
    request = journey.waits(run)
    path = f"/admin/approvals/approvalrequest/{request.pk}/decide/"
    journey.post(path, verdict="approve", reason="it is due")
    for number in range(len(PAYMENTS) - 1):
        journey.retry(journey.failed(run), number)
    until(lambda: newest(run).status == Status.COMPLETED)
    journey.look(newest(run))
    journey.rest.post(f"/approvals/{request.key}/approve", json={"approved": True})
    journey.browser.post(path, data={"verdict": "approve"})
    return run


def reject_by_command(journey: Journey) -> Run:
    """The second run: a failed model, and no."""
    run = journey.start()
    journey.retry(journey.failed(run), 1)
    request = journey.waits(run)
    until(lambda: NOTE in str(journey.slack.posts[1:]))
    words = ("approvals", "reject", str(request.key), "--as", "lim", "--reason", "no", "--json")
    journey.command(*words)
    journey.command(*words, code=2)
    journey.look(newest(run))
    return run


def sent(tools: FakeTools, models: FakeModels) -> None:
    """The secrets really were where they belong; otherwise this test would find nothing, and mean nothing."""
    pay = next(request for request in tools.requests if request.url.endswith("/pay"))
    bearer = (pay.header("Authorization") or "").encode("latin-1").decode()
    assert bearer == f"Bearer {SECRETS['PAY_TOKEN']}"
    assert pay.json()["key"] == SECRETS["BODY_KEY"]
    look = next(request for request in tools.requests if "/invoice" in request.url)
    assert look.header("X-Api-Key") == SECRETS["HEADER_KEY"]
    assert httpx2.URL(look.url).params["key"] == SECRETS["QUERY_KEY"]
    assert models.requests[0].headers["authorization"] == f"Bearer {SECRETS['MODEL_KEY']}"
    assert sum(request.url.endswith("/pay") for request in tools.requests) == len(PAYMENTS)


def test_no_secret_is_anywhere_after_a_whole_journey(
    journey: Journey, tmp_path: Path, tools: FakeTools, models: FakeModels
) -> None:
    seen, served = journey.seen, journey.served
    runs = [pay_at_last(journey), reject_by_command(journey)]
    spec = str(tmp_path / "specs" / "spec.yaml")
    journey.command("run_spec", spec, "--input", NOTE, "--json", "--approve-all", code=2)
    journey.command("runs", "list", "--as", "lim")
    for words in (("audit", "verify"), ("sweep", "--verbosity=2"), ("recover", "--verbosity=2")):
        journey.command(*words)
    pages = crawl(journey.browser, "/admin/")
    journey.end()
    sent(tools, models)
    until(lambda: journey.slack.updates)
    for request in journey.slack.requests:
        assert request.header("Authorization") == f"Bearer {SECRETS['SLACK_TOKEN']}"
        seen.keep("message to Slack", request.body.decode())
    assert tools.failures == models.failures == journey.slack.failures == []
    log = seen.keep("log of serve", served.said()) + seen.keep("log of commands", journey.terminal.log.read_text())
    assert len(pages) > 20, pages
    assert seen.keep_tables() > 1000
    for surface in ("table workflows_run.input", "GET /admin/", "GET /approvals/", "command approvals", "message to"):
        assert seen.places_of([NOTE], surface), f"the search finds nothing in {surface}"
    assert seen.places_of(["a second thought"], "events")
    assert seen.places_of(MARKS) == []
    assert seen.places_of([journey.token]) == []
    assert [str(key) for key in ApprovalRequest.objects.values_list("key", flat=True) if str(key) in log] == []
    assert {newest(run).status for run in runs} == {Status.COMPLETED, Status.REJECTED}


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://127.0.0.1:9/", "Bearer ${{BROKEN_HEADER}}"),
        ("http://${{HOST_PART}}.invalid/", "Bearer ${{PAY_TOKEN}}"),
        ("http://${{HOST_PART}} {{/", "Bearer ${{PAY_TOKEN}}"),
        ("http://127.0.0.1:${{HOST_PART}}/", "Bearer ${{PAY_TOKEN}}"),
        ("http://${{HOST_PART}}@127.0.0.1:9/", "Bearer ${{PAY_TOKEN}}"),
        ("${{URL_PART}}://127.0.0.1:9/", "Bearer ${{PAY_TOKEN}}"),
        ("http://127.0.0.1:9/${{BROKEN_HEADER}}", "Bearer ${{PAY_TOKEN}}"),
    ],
)
def test_a_call_that_cannot_be_made_tells_no_secret(
    url: str,
    header: str,
    tmp_path: Path,
    everybody: User,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    text = UNSENDABLE.replace("{url}", url).replace("{header}", header)
    run = begin(write_spec(tmp_path, text))
    work()
    run.refresh_from_db()
    assert run.status == Status.FAILED, run.status
    assert "broken" in run.error
    seen = Seen()
    seen.keep_tables()
    seen.keep("log", caplog.text)
    assert seen.places_of(MARKS) == []
