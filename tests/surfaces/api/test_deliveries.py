"""A delivery that comes again starts nothing and is told what it started (spec 1.2, `dedupe`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings

from statestore.jsontext import loads
from statestore.models import StateRecord
from tests.conftest import Clock
from tests.hooks import BY_ID, SIGNED, VARIABLE, hooked
from tests.signing import SECRET, github, standard
from tests.surfaces.api.conftest import Caller, Callers
from tests.surfaces.api.test_errors import check
from tests.workbench import STARTER
from workflows.models import Run, SpecVersion
from workflows.runs import cancel_run

pytestmark = pytest.mark.django_db
URL = "/webhook/clerk"
BODY = b'{"id": 7}'
BODY_ID = 'dedupe: "{{ trigger.id }}"'


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


def send(body: bytes = BODY, kind: str = "application/json", sign: Any = standard, **more: Any) -> Any:
    return Caller().send(URL, body, kind, headers=sign(body, **more))


def told(answer: Any, status: int) -> str:
    """The id of the run in an answer of this status."""
    assert answer.status_code == status, answer.content
    assert answer.json()["success"] is True
    return str(answer.json()["id"])


def nothing_kept() -> bool:
    return not any(table.objects.exists() for table in (Run, SpecVersion, StateRecord))


def test_a_repeat_is_answered_with_the_first_run(folder: Path) -> None:
    hooked(folder, SIGNED, BY_ID)
    first = told(send(id="msg_1"), 201)
    assert told(send(id="msg_1", away=60), 200) == first
    assert told(send(b'{"other": 1}', id="msg_1"), 200) == first
    other = told(send(id="msg_2"), 201)
    assert {first, other} == {str(run.uuid) for run in Run.objects.all()}
    assert len({first, other}) == 2


def test_the_repeat_of_a_sender_learns_the_id_and_no_more(folder: Path, callers: Callers) -> None:
    hooked(folder, BY_ID)
    with_id = {"webhook-id": "msg_1"}
    callers.operator.send(URL, BODY, headers=with_id)
    cancel_run(Run.objects.get(), actor=STARTER, reason="not for the sender")
    assert "not for the sender" in callers.requester.send(URL, BODY, headers=with_id).json()["state"]["error"]
    hooked(folder, SIGNED, BY_ID)
    again = send(id="msg_1")
    assert again.status_code == 200
    assert again.json()["state"] == {"status": "running", "trace": []}


def test_its_lifetime(folder: Path, clock: Clock) -> None:
    hooked(folder, SIGNED, BODY_ID, "dedupe_ttl: 1h")
    first = told(send(), 201)
    clock.advance(3590)
    assert told(send(), 200) == first
    clock.advance(20)
    second = told(send(), 201)
    assert second != first
    assert told(send(), 200) == second


def test_a_day_when_nothing_is_said(folder: Path, clock: Clock) -> None:
    hooked(folder, SIGNED, BODY_ID)
    first = told(send(), 201)
    clock.advance(86_300)
    assert told(send(), 200) == first
    clock.advance(200)
    assert told(send(), 201) != first


def test_keys_are_apart_for_every_agent(folder: Path, callers: Callers) -> None:
    spec = hooked(folder, BODY_ID)
    (folder / "other.yaml").write_text(spec.text.replace("id: clerk", "id: other"))
    assert told(callers.requester.send(URL, BODY), 201) != told(callers.requester.send("/webhook/other", BODY), 201)


@pytest.mark.parametrize("text", ["x" * 100_000, "hook:17", "approval:1", "ü\u2028😀", "a\nb", " a ", "0", "false"])
def test_any_text_can_be_a_key_and_none_is_kept(text: str, folder: Path) -> None:
    hooked(folder, SIGNED, BODY_ID)
    body = json.dumps({"id": text}).encode()
    assert told(send(body), 201) == told(send(body), 200)
    record = StateRecord.objects.get()
    assert (record.key[:14], len(record.key)) == ("hook:delivery:", 14 + 64)
    assert text not in record.key or len(text) == 1
    assert loads(record.value) == {"run": str(Run.objects.get().uuid)}


@pytest.mark.parametrize("value", [7, 7.5, True, [1], {"a": [2]}, 10**30, "7"])
def test_what_is_no_text_is_its_json(value: Any, folder: Path) -> None:
    hooked(folder, SIGNED, BODY_ID)
    body = json.dumps({"id": value}).encode()
    assert told(send(body), 201) == told(send(body, sign=github), 200)


@pytest.mark.parametrize(
    ("template", "body", "kind", "words"),
    [
        ("{{ trigger.id }}", b"{}", "application/json", "came to nothing: trigger.id"),
        ("{{ trigger.id }}", b"[]", "application/json", "came to nothing: trigger.id"),
        ("{{ trigger.id }}", b"hello", "text/plain", "came to nothing: trigger.id"),
        ("{{ trigger.id }}", b'{"id": null}', "application/json", "came to null: trigger.id"),
        ("{{ trigger.id }}", b'{"id": ""}', "application/json", "came to an empty text"),
        ("{{ trigger.id }} ", b'{"id": "\\t"}', "application/json", "came to an empty text"),
        ("{{ trigger.a }}/{{ trigger.id }}", b'{"a": 1}', "application/json", "came to nothing: trigger.id"),
        ("{{ $number(trigger.id) }}", b'{"id": "x"}', "application/json", "failed"),
        ("{{ trigger.headers.`webhook-signature` }}", BODY, "application/json", "came to nothing"),
        ("{{ trigger.headers.`authorization` }}", BODY, "application/json", "came to nothing"),
        ("{{ vars.kind }}-{{ trigger.id }}", BODY, "application/json", "not all of them have a value here"),
    ],
)
def test_a_template_that_tells_nothing(template: str, body: bytes, kind: str, words: str, folder: Path) -> None:
    hooked(folder, SIGNED, f'dedupe: "{template}"', vars='vars: {kind: {type: string, default: "${HOOK_KIND}"}}\n')
    answer = check(send(body, kind), "invalid")
    assert words in answer["error"]
    assert answer["errors"][0]["path"] == "trigger.dedupe"
    assert nothing_kept()


def test_what_a_template_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{{ trigger.headers.`x-kind` }}-{{ trigger.body.id }}-{{ vars.kind }}-{{ input }}"
    hooked(folder, SIGNED, f'dedupe: "{template}"', vars='vars: {kind: {type: string, default: "${HOOK_KIND}"}}\n')
    monkeypatch.setenv("HOOK_KIND", "a")
    kinds = [{"X-Kind": "one"}, {"X-Kind": "two"}, {"x-kind": "one"}]
    answers = [Caller().send(URL, BODY, headers=standard(BODY) | kind) for kind in kinds]
    assert [answer.status_code for answer in answers] == [201, 201, 200]
    monkeypatch.setenv("HOOK_KIND", "b")
    assert Caller().send(URL, BODY, headers=standard(BODY) | kinds[0]).status_code == 201


@pytest.mark.parametrize("body", [b"id=7&a=1", b'{"id": 7}', b"plain"])
def test_a_whole_body_as_it_came(body: bytes, folder: Path) -> None:
    hooked(folder, SIGNED, 'dedupe: "{{ input }}"')
    kind = "application/x-www-form-urlencoded"
    assert told(send(body, kind), 201) == told(send(body, kind), 200)
    assert told(send(body + b"8", kind), 201)


def test_a_refused_delivery_takes_no_key(folder: Path, callers: Callers) -> None:
    spec = hooked(folder, BY_ID)
    headers = {"webhook-id": "msg_1"}
    check(callers.nobody.send(URL, BODY, headers=headers), "not_authenticated")
    check(callers.stranger.send(URL, BODY, headers=headers), "not_allowed")
    check(callers.requester.send(URL, b"{", headers=headers), "invalid")
    check(callers.requester.send(URL, b"a\x00b", "text/plain", headers=headers), "invalid")
    spec.path.write_text(spec.text + "  nonsense: 1\n")
    check(callers.requester.send(URL, BODY, headers=headers), "spec_broken")
    spec.path.write_text(spec.text.replace("provider: ollama", 'provider: openai, api_key: "${NO_KEY_AT_ALL}"'))
    check(callers.requester.send(URL, BODY, headers=headers), "model_unavailable")
    assert nothing_kept()
    hooked(folder, BY_ID)
    told(callers.requester.send(URL, BODY, headers=headers), 201)


def test_a_run_that_is_not_kept_any_more_is_told_all_the_same(folder: Path, callers: Callers) -> None:
    hooked(folder, BODY_ID)
    first = told(callers.requester.send(URL, BODY), 201)
    Run.objects.all().delete()
    assert told(callers.requester.send(URL, BODY), 200) == first
    assert not Run.objects.exists()


def test_beside_an_idempotency_key(folder: Path, callers: Callers) -> None:
    """Whichever was seen before names the run; what is new is then not taken."""
    hooked(folder, BODY_ID)

    def sent(id: int, key: str, status: int) -> str:
        headers = {"Idempotency-Key": key}
        return told(callers.requester.send(URL, b'{"id": %d}' % id, headers=headers), status)

    first = sent(1, "a", 201)
    assert sent(1, "b", 200) == first
    second = sent(2, "b", 201)
    check(callers.requester.send(URL, b'{"id": 3}', headers={"Idempotency-Key": "b"}), "invalid")
    assert sent(3, "c", 201) not in (first, second)


def test_only_the_webhook_looks_for_repeats(folder: Path, callers: Callers) -> None:
    hooked(folder, BODY_ID)
    start = {"agent": "clerk", "input": '{"id": 7}'}
    assert told(callers.requester.post("/runs", start), 201) != told(callers.requester.post("/runs", start), 201)


def test_the_same_for_a_secret_of_the_setting(folder: Path, callers: Callers) -> None:
    """Files of version 1.0 and 1.1 have no `dedupe`: each delivery starts a run."""
    spec = hooked(folder)
    spec.path.write_text(spec.text.replace('"1.2"', '"1.1"'))
    with override_settings(KAMPONG_WEBHOOK_SECRETS={"clerk": VARIABLE}):
        assert told(send(), 201) != told(send(), 201)
