"""Text that others wrote stays text: in every list, page, confirmation, result and error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import AuditEntry
from approvals.services import decide
from approvals.tokens import create_token
from tests.conftest import People, allow
from tests.fakes_tools import FakeTools
from tests.surfaces.admin import scenes, states
from tests.surfaces.admin.conftest import QUEUE, RUNS, decide_url, run_url
from tests.workbench import acting, begin, to_pause, work, write_spec
from workflows.engine import jsontext
from workflows.models import Run, SpecVersion
from workflows.runs import newest

HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>'\"{% csrf_token %}{{ 7|add:7 }}"
STEP = "pay <script>alert(3)</script> {# x #}"
TURNED = "safe\u202e.exe"
#: What a browser would run, or would take for the end of our own element.
LIVE = ("<script>alert", "</pre></script>", "<img src=x", "onerror=alert(2)>")

SPEC = """\
version: "1.1"
agent:
  id: {agent_id}
  name: "<script>alert(4)</script>"
  role: Clerk
  goal: Pay.
  model: {{provider: ollama, name: test-model}}
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "{url}/pay"
      requires_approval: true
      headers: {{X-Note: "{{{{ input }}}}"}}
      body: {{json: {{note: "{{{{ input }}}}", deep: [{{"<b>": "{{{{ input }}}}"}}]}}}}
  workflow:
    - {{step: ask, type: approval, message: "{{{{ input }}}}"}}
    - {{step: {step}, type: tool, tool: pay}}
"""

# what is drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("sqlite")]


@pytest.fixture
def boss(people: People, signed_in: Callable[[User], Client]) -> Client:
    """Somebody who sees and does everything, with a name that is an attack too."""
    names = (
        "workflows.operate_run",
        "workflows.view_specversion",
        "approvals.view_auditentry",
        "approvals.view_apitoken",
        "approvals.delete_apitoken",
    )
    person = allow(people.approver, *names)
    person.first_name = "<script>alert(5)</script>"
    person.save(update_fields=["first_name"])
    return signed_in(person)


@pytest.fixture
def tools() -> Iterator[FakeTools]:
    with FakeTools({"POST /pay": {"status": 500, "text": "<script>alert(6)</script>"}}) as server:
        yield server


def _check(browser: Client, *addresses: str) -> None:
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code == 200, address
        _no_live_text(answer.content.decode(), address)


def _no_live_text(page: str, where: str) -> None:
    for text in LIVE:
        assert text not in page, (where, text)


def test_no_page_of_a_hostile_run_holds_anything_live(
    boss: Client, tmp_path: Path, tools: FakeTools, people: People
) -> None:
    spec = write_spec(tmp_path, SPEC, agent_id="payer", url=tools.url, step=jsontext.dumps(STEP))
    person = User.objects.get(pk=people.approver.pk)
    run, key = to_pause(spec, input=HOSTILE, actor=acting(person))
    _check(boss, "/admin/", QUEUE, decide_url(key), RUNS, run_url(run), f"{RUNS}{run.pk}/act/cancel/")
    bulk = boss.post(f"{QUEUE}bulk/", {"act": "approve", "pick": decide_url(key).split("/")[-3]})
    _no_live_text(bulk.content.decode(), "bulk")
    refused = boss.post(decide_url(key), {"verdict": "approve", "digest": "1:old", "reason": HOSTILE})
    assert refused.status_code == 409
    _no_live_text(refused.content.decode(), "refused")
    decide(key, approved=True, reason=HOSTILE, actor=acting(person, "admin"))
    work()
    second = newest(run)
    key = str(second.requests.get().key)
    page = boss.get(decide_url(key)).content.decode()
    assert "&lt;script&gt;alert(3)" in page
    assert "{{ 7|add:7 }}" in page
    _check(boss, QUEUE, decide_url(key), run_url(second))
    decide(key, approved=True, reason=HOSTILE, actor=acting(person, "admin"))
    work()
    ended = newest(run)
    assert ended.status == "failed"
    entry = AuditEntry.objects.latest("pk")
    _check(
        boss,
        run_url(ended),
        RUNS,
        decide_url(key),
        f"{QUEUE}?status=all",
        "/admin/approvals/auditentry/",
        f"/admin/approvals/auditentry/{entry.pk}/change/",
        f"/admin/workflows/specversion/{SpecVersion.objects.get().pk}/change/",
    )


def test_a_hostile_change_preview_and_changed_spec_stay_text(boss: Client, tmp_path: Path, tools: FakeTools) -> None:
    policy = "editable: [action.headers.X-Case], approvers: {quorum: 2}"
    tools.script["GET /invoice"] = {"json": {"note": HOSTILE}}
    spec = states.refunding(tmp_path, tools.url, policy)
    _, key = to_pause(spec, input=HOSTILE)
    typed = {"digest": boss.get(decide_url(key)).context["digest"], "edits.0": HOSTILE.replace("alert", "confirm")}
    shown = boss.post(decide_url(key), typed | {"verdict": "preview"})
    assert "&lt;script&gt;" in shown.content.decode()
    assert "{{ 7|add:7 }}" in shown.content.decode()
    _no_live_text(shown.content.decode().replace("<script>confirm", "<script>alert"), "preview")
    typed |= {"previewed": shown.context["previewed"], "reason": HOSTILE, "verdict": "propose"}
    assert boss.post(decide_url(key), typed).status_code == 302
    _check(boss, decide_url(key))
    spec.path.write_text(spec.path.read_text().replace("step: sign off", f"step: {jsontext.dumps(STEP)}"))
    page = boss.get(decide_url(key))
    assert "How the spec changed" in page.content.decode()
    assert "&lt;script&gt;alert(3)" in page.content.decode()
    _no_live_text(page.content.decode(), "drift")
    wrong = boss.post(decide_url(key), typed | {"verdict": "rebind", "reason": "", "to": HOSTILE})
    _no_live_text(wrong.content.decode(), "rebind")


def test_a_hostile_error_reason_and_token_name_stay_text(boss: Client, tmp_path: Path, people: People) -> None:
    run = begin(scenes.asking(tmp_path))
    answer = boss.post(f"{RUNS}{run.pk}/act/cancel/", {"reason": HOSTILE}, follow=True)
    page = answer.content.decode()
    assert "&lt;script&gt;alert(1)" in page
    _no_live_text(page, "cancelled")
    create_token(people.approver, "<script>alert(7)</script>")
    _check(boss, "/admin/approvals/apitoken/", RUNS, "/admin/approvals/auditentry/")
    revoke = boss.get("/admin/approvals/apitoken/").context["rows"][0]["mark"]
    _check(boss, f"/admin/approvals/apitoken/{revoke}/revoke/")


def test_text_that_turns_the_line_around_is_shown_by_its_code(boss: Client, tmp_path: Path) -> None:
    run, key = to_pause(scenes.asking(tmp_path), input=TURNED)
    for address in (QUEUE, decide_url(key), run_url(run)):
        page = boss.get(address).content.decode()
        assert "\u202e" not in page, address
    assert "safe\\u202e.exe" in boss.get(decide_url(key)).content.decode()


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(boss: Client, waiting: tuple[Run, str]) -> None:
    for address in ("/admin/", QUEUE, decide_url(waiting[1]), RUNS, run_url(waiting[0])):
        answer = boss.get(address)
        page = answer.content.decode()
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "<style" not in page
        assert " style=" not in page
        assert "<script>" not in page
        assert "javascript:" not in page
        addresses = [word for word in page.split('"') if word.startswith(("http:", "https:", "//"))]
        assert not [address for address in addresses if "w3.org" not in address]
