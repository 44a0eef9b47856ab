"""What is only looked at: audit, tokens, specs, workers. Nothing of ours is added, changed or deleted in the admin."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, reverse

from approvals import audit
from approvals.models import Absence, ApiToken, ApprovalRequest, AuditEntry, Notice, SlackUser
from approvals.services import decide
from approvals.tokens import create_token
from statestore.models import StateRecord
from tests.conftest import People, allow
from tests.surfaces.admin.conftest import QUEUE, RUNS, decide_url, run_url
from tests.workbench import acting
from workflows import beats
from workflows.models import Run, SpecVersion, TriggerState, WorkerBeat

OURS = (
    *(Run, SpecVersion, TriggerState, WorkerBeat),
    *(ApprovalRequest, AuditEntry, ApiToken, StateRecord, Absence, Notice, SlackUser),
)
AUDIT = "/admin/approvals/auditentry/"
TOKENS = "/admin/approvals/apitoken/"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def root(db: None) -> Client:
    """A superuser: what even they cannot do, nobody can."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("root", "root@example.org", "a long enough password"))
    return browser


@pytest.fixture
def decided(waiting: tuple[Run, str], people: People) -> AuditEntry:
    decide(waiting[1], approved=False, reason="no", actor=acting(people.approver, "admin"))
    return AuditEntry.objects.get()


def _rows() -> dict[str, int]:
    return {model.__name__: model._default_manager.count() for model in OURS}


def test_nothing_of_ours_is_added_changed_or_deleted(root: Client, decided: AuditEntry, people: People) -> None:
    create_token(people.approver, "robot")
    beats.beat()
    before = _rows()
    for model in OURS:
        label = f"{model._meta.app_label}_{model._meta.model_name}"
        row = model._default_manager.first()
        for act, arguments in (("add", []), ("change", [row]), ("delete", [row])):
            if arguments and row is None:
                continue
            try:
                address = reverse(f"admin:{label}_{act}", args=[one.pk for one in arguments if one is not None])
            except NoReverseMatch:
                assert model in (ApiToken, Absence), label
                continue
            answer = root.post(address, {"post": "yes", "workspace": "stolen"})
            unchanged = answer.status_code in (403, 404) or (model in (Run, AuditEntry) and act == "change")
            assert unchanged or answer.headers.get("Location", "").endswith("/decide/"), (address, answer.status_code)
        listing = reverse(f"admin:{label}_changelist")
        picks = {"action": "delete_selected", "_selected_action": [getattr(row, "pk", 0)], "post": "yes"}
        root.post(listing, picks)
    assert _rows() == before
    assert not Run.objects.filter(workspace="stolen").exists()
    assert not AuditEntry.objects.filter(workspace="stolen").exists()


def test_no_other_model_of_a_library_can_be_changed_here_except_users_and_groups() -> None:
    others = {model._meta.label for model in admin.site._registry if model not in OURS}
    assert others == {"auth.User", "auth.Group", "django_tasks_database.DBTaskResult"}


def test_reading_only_selects(root: Client, waiting: tuple[Run, str], people: People) -> None:
    version = SpecVersion.objects.get()
    beats.beat()
    create_token(people.approver, "robot")
    addresses = [
        "/admin/",
        QUEUE,
        decide_url(waiting[1]),
        RUNS,
        run_url(waiting[0]),
        f"{RUNS}{waiting[0].pk}/act/cancel/",
        AUDIT,
        TOKENS,
        "/admin/workflows/specversion/",
        f"/admin/workflows/specversion/{version.pk}/change/",
        "/admin/workflows/workerbeat/",
        f"/admin/workflows/workerbeat/{WorkerBeat.objects.get().pk}/change/",
    ]
    for address in addresses:
        with CaptureQueriesContext(connection) as asked:
            assert root.get(address).status_code == 200, address
        words = {query["sql"].lstrip("(").split(None, 1)[0].upper() for query in asked.captured_queries}
        assert words == {"SELECT"}, (address, words)
        assert len(asked.captured_queries) < 30, (address, len(asked.captured_queries))


@pytest.mark.only("sqlite")
def test_reading_does_not_wait_for_a_writer(root: Client, waiting: tuple[Run, str]) -> None:
    writer = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        for address in (QUEUE, decide_url(waiting[1]), RUNS, run_url(waiting[0]), "/admin/workflows/specversion/"):
            assert root.get(address).status_code == 200, address
        writer.execute("ROLLBACK")
    finally:
        writer.close()


def test_the_audit_is_listed_narrowed_and_says_whether_it_is_sealed(root: Client, decided: AuditEntry) -> None:
    page = root.get(AUDIT).content.decode()
    assert "rejected by approver on" in page
    assert "not sealed yet" in page
    found = {"?act=decide": 1, "?act=cancel": 0, "?agent=clerk": 1, "?actor=approver": 1, "?actor=x": 0}
    for query, count in found.items():
        assert len(root.get(AUDIT + query).context["rows"]) == count, query
    assert audit.seal() == 1
    entry = root.get(f"{AUDIT}{decided.pk}/change/").content.decode()
    assert "sealed as no. 1" in entry
    assert "as they were sealed" in entry
    assert decided.digest in entry
    AuditEntry.objects.update(reason="another reason")
    assert "does not match its hash" in root.get(f"{AUDIT}{decided.pk}/change/").content.decode()
    assert root.get(f"{AUDIT}999/change/").status_code == 404


def test_an_empty_audit_and_no_tokens_say_so(root: Client) -> None:
    assert "Nothing was done yet." in root.get(AUDIT).content.decode()
    assert "There are no tokens." in root.get(TOKENS).content.decode()


def test_a_token_is_revoked_without_its_hash_on_any_page(root: Client, people: People) -> None:
    secret = create_token(people.approver, "robot")
    create_token(people.approver, "other")
    token = ApiToken.objects.get(name="robot")
    hidden = (secret, token.digest, token.token_key)
    listing = root.get(TOKENS)
    row = next(row for row in listing.context["rows"] if row["name"] == "robot")
    address = f"{TOKENS}{row['mark']}/revoke/"
    deleting = root.get(reverse("admin:auth_user_delete", args=[people.approver.pk])).content.decode()
    pages = [listing.content.decode(), root.get(address).content.decode(), deleting]
    assert "robot of approver" in deleting
    assert ApiToken.objects.count() == 2
    answer = root.post(address, follow=True)
    pages.append(answer.content.decode() + address)
    assert "The token robot of approver is revoked." in pages[-1]
    assert [token.name for token in ApiToken.objects.all()] == ["other"]
    for page in pages:
        assert not [text for text in hidden if text in page]
    note = LogEntry.objects.get()
    assert (note.user.username, note.object_repr) == ("root", "API token robot of approver")
    assert root.post(address).status_code == 404


def test_seeing_tokens_is_not_revoking_them(people: People, signed_in: Callable[[User], Client]) -> None:
    create_token(people.approver, "robot")
    reader = signed_in(allow(people.stranger, "approvals.view_apitoken"))
    page = reader.get(TOKENS)
    assert "Revoke" not in page.content.decode()
    assert reader.post(f"{TOKENS}{page.context['rows'][0]['mark']}/revoke/").status_code == 403
    assert ApiToken.objects.count() == 1


def test_a_worker_shows_the_names_of_its_variables_and_no_value(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_NAME", "canary-value-77")
    beats.beat()
    page = root.get(f"/admin/workflows/workerbeat/{WorkerBeat.objects.get().pk}/change/").content.decode()
    assert "CANARY_NAME" in page
    assert "canary-value-77" not in page


def test_the_error_pages_say_what_to_do(root: Client, people: People, signed_in: Callable[[User], Client]) -> None:
    missing = root.get("/admin/nothing/here/")
    assert (missing.status_code, "There is nothing here" in missing.content.decode()) == (404, True)
    refused = signed_in(people.stranger).get(QUEUE)
    assert (refused.status_code, "Ask an administrator" in refused.content.decode()) == (403, True)
    foreign = root.get("/admin/", headers={"host": "evil.example"})
    assert (foreign.status_code, "ALLOWED_HOSTS" in foreign.content.decode()) == (400, True)
