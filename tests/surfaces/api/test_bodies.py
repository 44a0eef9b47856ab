"""Whatever is sent instead of a good body: one clear answer, nothing changed, no traceback (scenarios 33, 34, 51)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.urls import get_resolver

from approvals.models import ApprovalRequest, AuditEntry
from statestore.jsontext import dumps
from tests.surfaces.api.conftest import Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import to_pause
from workflows.models import Run
from workflows.registry import SpecFile

# what is read is the same on both
pytestmark = [pytest.mark.django_db, pytest.mark.everyday("sqlite")]

DEEP = b"[" * 100_000 + b"]" * 100_000
DEEP_OBJECT = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
MIB = 1024 * 1024

HOSTILE: dict[str, tuple[bytes, str, str]] = {
    "a list": (b"[]", "application/json", "invalid"),
    "a text": (b'"x"', "application/json", "invalid"),
    "a number": (b"5", "application/json", "invalid"),
    "null": (b"null", "application/json", "invalid"),
    "empty": (b"", "application/json", "invalid"),
    "blank": (b" \n", "application/json", "invalid"),
    "broken": (b'{"approved": ', "application/json", "invalid"),
    "deep lists": (DEEP, "application/json", "invalid"),
    "deep objects": (DEEP_OBJECT, "application/json", "invalid"),
    "deep and broken": (b"[" * 100_000, "application/json", "invalid"),
    "not a number": (b'{"approved": NaN}', "application/json", "invalid"),
    "infinity": (b'{"approved": -Infinity}', "application/json", "invalid"),
    "an endless number": (b'{"approved": ' + b"9" * 10_000 + b"}", "application/json", "invalid"),
    "half a surrogate": (b'{"reason": "\\ud800", "approved": true}', "application/json", "invalid"),
    "NUL": (b'{"reason": "\\u0000", "approved": true}', "application/json", "invalid"),
    "no UTF-8": (b'{"reason": "\xff\xfe", "approved": true}', "application/json", "invalid"),
    "UTF-16": ('{"approved": true}'.encode("utf-16"), "application/json", "invalid"),
    "a name twice": (b'{"approved": false, "approved": true}', "application/json", "invalid"),
    "the wrong type": (b'{"approved": true}', "text/plain", "unsupported_media_type"),
    "a form": (b"approved=true", "application/x-www-form-urlencoded", "unsupported_media_type"),
    "a broken multipart": (b"--x", "multipart/form-data; boundary=y", "unsupported_media_type"),
    "a multipart without boundary": (b"--x", "multipart/form-data", "unsupported_media_type"),
    "no type": (b'{"approved": true}', "", "unsupported_media_type"),
    "over the limit": (b" " * (MIB + 1), "application/json", "too_large"),
    "30 MB": (b'{"reason": "' + b"x" * 30 * MIB + b'"}', "application/json", "too_large"),
    "a large form": (b"a=" + b"x" * 30 * MIB, "application/x-www-form-urlencoded", "too_large"),
}
ENDPOINTS = (
    ("requester", "/runs"),
    ("operator", "/runs/{run}/cancel"),
    ("operator", "/runs/{run}/retry"),
    ("operator", "/runs/{run}/give-up"),
    ("approver", "/runs/{run}/approve"),
    ("approver", "/approvals/{key}/approve"),
    ("approver", "/approvals/{key}/delegate"),
    ("approver", "/approvals/{key}/withdraw"),
    ("approver", "/approvals/{key}/edit"),
    ("operator", "/approvals/{key}/rebind"),
)
#: They take any JSON, or what Slack signed; their bodies have tests of their own.
OTHERS = {"/webhook", "/webhook/<str:agent_id>", "/slack/interactions"}


def everything() -> Any:
    """What a refusal must not change."""
    return (
        list(Run.objects.order_by("id").values()),
        list(ApprovalRequest.objects.order_by("id").values()),
        AuditEntry.objects.count(),
    )


def posting(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    """The routes of the interface that take a body, as they are written."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from posting(pattern.url_patterns, route)
        elif hasattr(getattr(pattern.callback, "cls", None), "post") and not route.endswith("/"):
            yield "/" + route.replace("<str:run_id>", "{run}").replace("<str:key>", "{key}")


def test_no_endpoint_that_takes_a_body_is_left_out() -> None:
    assert set(posting(get_resolver().url_patterns)) == {path for _, path in ENDPOINTS} | OTHERS


@pytest.mark.parametrize("what", HOSTILE)
def test_a_body_that_is_no_good_is_refused_everywhere(
    what: str, callers: Callers, clerk: SpecFile, caplog: pytest.LogCaptureFixture
) -> None:
    raw, content_type, code = HOSTILE[what]
    run, key = to_pause(clerk)
    before = everything()
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        for who, path in ENDPOINTS:
            check(getattr(callers, who).send(path.format(run=run.uuid, key=key), raw, content_type), code)
    assert everything() == before
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "what", ["empty", "blank", "broken", "deep lists", "deep objects", "deep and broken", "no UTF-8"]
)
def test_a_webhook_takes_any_json_and_refuses_what_is_none(what: str, callers: Callers, clerk: SpecFile) -> None:
    raw, content_type, code = HOSTILE[what]
    check(callers.requester.send("/webhook/clerk", raw, content_type), code)
    assert not Run.objects.exists()


@pytest.mark.parametrize("field", ["state", "context", "run", "step", "approved_by", "user", "actor", "reason "])
def test_a_decision_with_an_unknown_field_is_refused_by_its_name(field: str, callers: Callers, clerk: SpecFile) -> None:
    run, key = to_pause(clerk)
    for path in (f"/approvals/{key}/approve", f"/runs/{run.uuid}/approve"):
        body = check(callers.approver.post(path, {"approved": True, field: "operator"}), "invalid")
        assert [error["path"] for error in body["errors"]] == [field]
        assert field in body["error"]
    assert ApprovalRequest.objects.get().status == "open"


@pytest.mark.parametrize("approved", ["yes", "true", 1, 0, None, [], {}, 1.5])
def test_approved_is_true_or_false_and_nothing_like_it(approved: Any, callers: Callers, clerk: SpecFile) -> None:
    _, key = to_pause(clerk)
    body = check(callers.approver.post(f"/approvals/{key}/approve", {"approved": approved}), "invalid")
    assert body["errors"][0]["path"] == "approved"
    assert ApprovalRequest.objects.get().status == "open"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"reason": 5}, "reason"),
        ({"reason": "x" * 4001}, "reason"),
        ({"digest": 5}, "digest"),
        ({"digest": ["1:00"]}, "digest"),
        ({"answers": {"amout": 5}}, "answers"),
        ({"answers": []}, "answers"),
        ({"edits": {"amount": 5}}, "edits"),
    ],
)
def test_a_wrong_field_keeps_the_approval_pending(given: Any, path: str, callers: Callers, clerk: SpecFile) -> None:
    _, key = to_pause(clerk)
    body = check(callers.approver.post(f"/approvals/{key}/approve", {"approved": True} | given), "invalid")
    assert body["errors"][0]["path"] == path
    assert ApprovalRequest.objects.get().status == "open"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "agent"),
        ({"agent": "clerk"}, "input"),
        ({"agent": 5, "input": ""}, "agent"),
        ({"agent": "clerk", "input": 5}, "input"),
        ({"agent": "clerk", "input": {"a": 1}}, "input"),
        ({"agent": "clerk", "input": "", "vars": []}, "vars"),
        ({"agent": "clerk", "input": "", "vars": {"ghost": 1}}, "vars.ghost"),
        ({"agent": "clerk", "input": "", "actor": "root"}, "actor"),
        ({"agent": "clerk", "input": "", "user": 1}, "user"),
    ],
)
def test_a_run_with_a_wrong_field_is_not_started(given: Any, path: str, callers: Callers, clerk: SpecFile) -> None:
    body = check(callers.requester.post("/runs", given), "invalid")
    assert path in [error["path"] for error in body["errors"]]
    assert not Run.objects.exists()


@pytest.mark.parametrize("query", ["wait=61", "wait=-1", "wait=x", "wait=", "wait=nan", "wait=1e1", "wiat=5"])
def test_a_wait_outside_its_bounds_keeps_the_approval_pending(query: str, callers: Callers, clerk: SpecFile) -> None:
    _, key = to_pause(clerk)
    check(callers.approver.post(f"/approvals/{key}/approve?{query}", {"approved": True}), "invalid")
    assert ApprovalRequest.objects.get().status == "open"


def test_a_json_type_with_parameters_is_json(callers: Callers, clerk: SpecFile) -> None:
    raw = dumps({"agent": "clerk", "input": "hé"}).encode()
    for content_type in ("application/json; charset=utf-8", "Application/JSON"):
        assert callers.requester.send("/runs", raw, content_type).status_code == 201


def test_who_asks_comes_before_what_was_sent_and_that_before_what_is_allowed(callers: Callers) -> None:
    path = "/approvals/17/approve"
    check(callers.nobody.send(path, b"x" * (MIB + 1)), "not_authenticated")
    check(callers.stranger.send(path, b"x" * (MIB + 1)), "too_large")
    check(callers.stranger.send(path, b"[]"), "invalid")
    check(callers.stranger.post(path, {"approved": True, "reason": "x" * 4001}), "invalid")
    check(callers.stranger.post(path, {"approved": True}), "not_allowed")
