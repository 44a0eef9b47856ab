"""The admin shows which entries there are: no value, no approval key, nothing to press."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from statestore.keys import fingerprint
from statestore.models import StateRecord
from statestore.store import StateStore

CANARY = "canary-value-1f3a"
KEY = "approval:0190c0de-secret-key"


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", "root@example.org", "a long enough password"))
    StateStore("default", "payer", kinds=("approval:",)).put(KEY, {"outputs": CANARY}, ttl=60)
    StateStore("default", "payer").put("visible-key", CANARY)
    return client


def test_the_list_shows_a_fingerprint_for_an_approval_and_no_value(admin: Client) -> None:
    page = admin.get(reverse("admin:statestore_staterecord_changelist")).content.decode()
    assert "visible-key" in page
    assert f"approval:#{fingerprint(KEY)}" in page
    assert KEY not in page
    assert CANARY not in page


def test_the_page_of_an_entry_shows_neither(admin: Client) -> None:
    record = StateRecord.objects.get(key=KEY)
    page = admin.get(reverse("admin:statestore_staterecord_change", args=[record.pk])).content.decode()
    assert fingerprint(KEY) in page
    assert KEY not in page
    assert CANARY not in page


def test_nothing_can_be_added_changed_or_deleted(admin: Client) -> None:
    record = StateRecord.objects.get(key="visible-key")
    assert admin.get(reverse("admin:statestore_staterecord_add")).status_code == 403
    assert admin.post(reverse("admin:statestore_staterecord_delete", args=[record.pk])).status_code == 403
    change = reverse("admin:statestore_staterecord_change", args=[record.pk])
    assert admin.post(change, {"workflow": "other"}).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [record.pk], "post": "yes"}
    admin.post(reverse("admin:statestore_staterecord_changelist"), action)
    assert StateRecord.objects.filter(pk=record.pk, workflow="payer").exists()


def test_the_name_of_a_record_tells_no_approval_key(admin: Client) -> None:
    assert [str(record) for record in StateRecord.objects.order_by("id")] == [
        f"payer: approval:#{fingerprint(KEY)}",
        "payer: visible-key",
    ]
