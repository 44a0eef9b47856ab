"""A policy's form on the decision page: what it asks, what was typed as JSON, and what is wrong with it (spec 1.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from approvals import formfields as forms
from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from approvals.services import decide
from tests.conftest import People, allow
from tests.surfaces.admin.conftest import QUEUE, decide_url, run_url
from tests.surfaces.forms import FORM, LEAST, LEAST_ANSWERS, answering
from tests.workbench import acting, to_pause, work
from workflows.engine import jsontext
from workflows.models import Run, Status
from workflows.runs import newest

SignedIn = Callable[[User], Client]

# what is drawn is the same on both
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.everyday("sqlite")]


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    allow(people.approver, "approvals.view_auditentry")
    return signed_in(people.approver)


def _post(browser: Client, address: str, verdict: str = "approve", /, **fields: Any) -> Any:
    shown = browser.get(address).context["digest"]
    return browser.post(address, {"verdict": verdict, "digest": shown, "reason": "", **LEAST, **fields})


def _tag(page: str, name: str) -> str:
    """The element of this field."""
    found = re.search(rf'<(?:input|select|textarea)[^>]* name="{re.escape(name)}"[^>]*>', page)
    assert found is not None, name
    return found[0]


def test_every_field_is_drawn_by_its_type_with_label_help_default_and_bounds(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(answering(tmp_path))
    page = approver.get(decide_url(key)).content.decode()
    amount = _tag(page, "answers.amount")
    for part in (
        'type="number"',
        'min="1"',
        'max="500"',
        'step="any"',
        " required",
        'aria-describedby="answers-amount-help"',
    ):
        assert part in amount
    assert '<label for="answers-amount">Amount to pay (needed)</label>' in page
    assert 'id="answers-amount-help">What we owe, in SGD. (at least 1; at most 500)</p>' in page
    assert _tag(page, "answers.account").startswith("<select")
    assert "required" in _tag(page, "answers.account")
    assert 'value="1"' in (copies := _tag(page, "answers.copies"))
    assert 'step="1"' in copies
    assert 'maxlength="60"' in (note := _tag(page, "answers.note"))
    assert note.startswith("<textarea")
    assert 'type="checkbox"' in _tag(page, "answers.urgent")
    assert _tag(page, "answers.tags").startswith("<textarea")
    assert page.count('name="answers.tell"') == 2
    assert "<legend>address (may be left out)</legend>" in page
    assert 'value="SG"' in _tag(page, "answers.address.country")
    assert "required" not in _tag(page, "answers.address.city")
    assert _tag(page, "answers.address.point").startswith("<textarea")
    assert re.search(r'value="reject" formnovalidate', page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for named in re.findall(r'(?:for|aria-describedby)="([^"]+)"', page):
        assert set(named.split()) <= set(ids), named


def test_what_was_typed_reaches_the_output_the_audit_and_the_run_page(approver: Client, tmp_path: Path) -> None:
    run, key = to_pause(answering(tmp_path))
    typed: dict[str, Any] = {
        "answers.note": "two\r\nlines",
        "answers.urgent": "on",
        "answers.tags": "late \r\n\r\n<b>x</b>\r\n",
        "answers.tell": ['"bookkeeping"'],
        "answers.address.city": "Ipoh",
        "answers.address.point": '{"lat": 4.6}',
        "answers.parts": '[{"sum": 1}]',
    }
    told = _post(approver, decide_url(key), **typed)
    assert told.status_code == 302
    work()
    wanted = LEAST_ANSWERS | {
        "urgent": True,
        "note": "two\nlines",
        "tags": ["late ", "<b>x</b>"],
        "tell": ["bookkeeping"],
        "address": {"city": "Ipoh", "country": "SG", "point": {"lat": 4.6}},
        "parts": [{"sum": 1}],
    }
    ended = newest(run)
    assert ended.status == Status.COMPLETED
    entry = AuditEntry.objects.get(act="decide")
    assert jsontext.loads(entry.answers) == wanted
    page = approver.get(run_url(ended)).content.decode()
    assert "bookkeeping" in page
    assert "<b>x</b>" not in page
    assert "Ipoh" in approver.get(f"/admin/approvals/auditentry/{entry.pk}/change/").content.decode()


def test_an_object_in_which_nothing_was_touched_is_left_out(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(answering(tmp_path))
    assert _post(approver, decide_url(key)).status_code == 302
    assert jsontext.loads(AuditEntry.objects.get(act="decide").answers) == LEAST_ANSWERS


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("amount", "", "is required"),
        ("amount", "0", "must be at least 1"),
        ("amount", "12,50", "must be a number, such as 12 or 12.5"),
        ("amount", "NaN", "must be a number"),
        ("amount", "١٢", "must be a number"),
        ("copies", "1.5", "must be a whole number"),
        ("copies", "", "a value is needed here"),
        ("account", '"other"', "must be one of those that are offered"),
        ("account", "", "is required"),
        ("note", "x" * 61, "must have at most 60 characters"),
        ("reference", "r-1", "must match the pattern"),
        ("tags", "long enough\nx", "[1]: must have at least 2 characters"),
        ("tell", ['"nobody"'], "must be one of those that are offered"),
        ("address.country", "MY", "city: is required"),
        ("address.point", "{'lat': 1}", "this is not JSON"),
        ("address.point", '{"lat": "x"}', "lat: must be a number"),
        ("parts", "[1]", "[0]: must be an object"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_at_its_field_and_changes_nothing(
    approver: Client, tmp_path: Path, name: str, typed: Any, words: str
) -> None:
    _, key = to_pause(answering(tmp_path))
    city = {"answers.address.city": "Ipoh"} if name == "address.point" else {}
    kept = {"answers.tags": "kept", "reason": "why <b>"}
    told = _post(approver, decide_url(key), **kept | city | {f"answers.{name}": typed})
    page = told.content.decode()
    assert told.status_code == 400
    assert "Nothing was decided" in page
    drawn = {field.path: field for field in forms.flat(told.context["fields"])}
    wrong = {path: field.problems for path, field in drawn.items() if field.problems}
    at = "answers.address.city" if name == "address.country" else f"answers.{name}"
    words = words.removeprefix("city: ")
    assert list(wrong) == [at]
    assert words in wrong[at][0]
    assert f'id="{at.replace(".", "-")}-error"' in page
    if name != "tell":
        assert f"{at.replace('.', '-')}-error" in _tag(page, at)
        assert 'aria-invalid="true"' in _tag(page, at)
    assert drawn["answers.tags"].text.replace("\r", "") == (typed if name == "tags" else "kept")
    if isinstance(typed, str) and typed and name != "account":
        assert drawn[f"answers.{name}"].text == typed
    assert "why &lt;b&gt;" in page
    assert ApprovalRequest.objects.get(key=key).status == RequestStatus.OPEN
    assert not AuditEntry.objects.filter(act="decide").exists()


def test_everything_that_is_wrong_is_told_at_once(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(answering(tmp_path))
    typed = {"answers.amount": "x", "answers.account": "", "answers.parts": '[{"sum": "x"}]'}
    told = _post(approver, decide_url(key), **typed)
    wrong = {field.path: field.problems for field in told.context["fields"] if field.problems}
    assert list(wrong) == ["answers.amount", "answers.account", "answers.parts"]
    assert all(len(problems) == 1 for problems in wrong.values())


def test_a_number_that_is_none_is_shown_again_as_text(approver: Client, tmp_path: Path) -> None:
    _, key = to_pause(answering(tmp_path))
    page = _post(approver, decide_url(key), **{"answers.amount": "twelve"}).content.decode()
    assert 'type="text"' in (tag := _tag(page, "answers.amount"))
    assert 'value="twelve"' in tag


def test_a_rejection_needs_no_answers_and_keeps_none(approver: Client, tmp_path: Path) -> None:
    run, key = to_pause(answering(tmp_path))
    assert _post(approver, decide_url(key), "reject", **{"answers.amount": "nonsense"}).status_code == 302
    assert newest(run).status == Status.REJECTED
    assert AuditEntry.objects.get(act="decide").answers == ""


def test_a_request_that_is_over_says_so_whatever_was_typed(approver: Client, people: People, tmp_path: Path) -> None:
    _, key = to_pause(answering(tmp_path))
    address = decide_url(key)
    digest = approver.get(address).context["digest"]
    decide(key, approved=False, actor=acting(people.approver))
    told = approver.post(address, {"verdict": "approve", "digest": digest, "answers.amount": "nonsense"})
    assert (told.status_code, "too late" in told.content.decode().lower()) in ((404, True), (409, True))


def test_bulk_refuses_to_approve_it_and_rejects_it(approver: Client, tmp_path: Path) -> None:
    run, key = to_pause(answering(tmp_path))
    pk = ApprovalRequest.objects.get(key=key).pk
    bulk = f"{QUEUE}bulk/"
    shown = approver.post(bulk, {"act": "approve", "pick": [pk]})
    assert "open it to answer" in shown.content.decode()
    fields = {"confirmed": "yes", "pick": [pk], f"digest-{pk}": shown.context["rows"][0]["digest"], "reason": ""}
    told = approver.post(bulk, {"act": "approve", **fields})
    assert "open it to answer" in told.context["results"][0]["told"]
    assert Run.objects.get(pk=run.pk).status == Status.AWAITING
    approver.post(bulk, {"act": "reject", **fields})
    assert newest(run).status == Status.REJECTED


def test_every_value_that_can_be_typed_comes_back_as_it_was() -> None:
    form = yaml.safe_load(FORM)
    typed = QueryDict(mutable=True)
    typed.update(LEAST | {"answers.amount": "9007199254740993", "answers.note": "\r\n a"})
    answers, errors = forms.read(form, typed)
    assert errors == []
    assert (answers["amount"], answers["note"]) == (9007199254740993, "\n a")
    text = next(field.text for field in forms.fields(form, typed) if field.path == "answers.note")
    assert text == "\r\n a"
