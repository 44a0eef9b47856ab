"""Which bytes a signature makes good, by the published example and by hand (scenarios 44 and 45)."""

from __future__ import annotations

import base64
import logging
import time
from typing import Any

import pytest

from tests import signing
from tests.conftest import Clock
from tests.signing import EXAMPLE_BODY, EXAMPLE_ID, EXAMPLE_SIGNATURE, EXAMPLE_TIME, SECRET, github, standard
from workflows import webhooks
from workflows.errors import NotAuthenticated

VARIABLE = "HOOK_SECRET"
BODY = b'{"id": 7}'
EXAMPLE = {
    "webhook-id": EXAMPLE_ID,
    "webhook-timestamp": str(EXAMPLE_TIME),
    "webhook-signature": EXAMPLE_SIGNATURE,
}


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


def verified(headers: dict[str, str], body: bytes = BODY) -> bool:
    lower = {name.lower(): text for name, text in headers.items()}
    try:
        webhooks.check_signature("clerk", VARIABLE, lower, body)
    except NotAuthenticated:
        return False
    return True


@pytest.fixture
def then(clock: Clock) -> None:
    """The time of the published example."""
    clock.advance(EXAMPLE_TIME - time.time())


def test_the_published_example(then: None) -> None:
    assert verified(EXAMPLE, EXAMPLE_BODY)
    assert not verified(EXAMPLE, EXAMPLE_BODY.replace(b" ", b""))
    for name in EXAMPLE:
        assert not verified(EXAMPLE | {name: EXAMPLE[name].swapcase() + "0"}, EXAMPLE_BODY)


def test_our_own_signing_is_that_of_the_example(then: None) -> None:
    assert standard(EXAMPLE_BODY, id=EXAMPLE_ID)["webhook-signature"] == EXAMPLE_SIGNATURE


def test_the_example_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """From GitHub's page about validating deliveries."""
    monkeypatch.setenv(VARIABLE, "It's a Secret to Everybody")
    mac = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert verified({"X-Hub-Signature-256": f"sha256={mac}"}, b"Hello, World!")
    assert not verified({"X-Hub-Signature-256": f"sha256={mac}"}, b"Hello, World")


@pytest.mark.parametrize("given", ["plain secret, ünd more", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a whsec_ inside"])
def test_a_secret_without_the_prefix_is_its_own_bytes(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, given)
    assert verified(standard(BODY, secret=given))
    assert verified(github(BODY, secret=given))
    assert not verified(standard(BODY, secret=given + "x"))
    assert not verified(github(BODY, secret=given + "x"))


@pytest.mark.parametrize("sign", [standard, github])
def test_one_byte_more_less_or_other(sign: Any) -> None:
    headers = sign(BODY)
    assert verified(headers)
    for other in (BODY + b" ", BODY[:-1], BODY.replace(b"7", b"8"), b"", BODY.decode().encode("utf-16")):
        assert not verified(headers, other)


@pytest.mark.parametrize(("away", "good"), [(-295, True), (295, True), (-305, False), (305, False), (-86400, False)])
def test_five_minutes(away: int, good: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kampong.webhooks"):
        assert verified(standard(BODY, away=away)) is good
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (0 if good else 1)
    if lines:
        assert "a webhook of clerk is refused: its time is" in lines[0]
        assert "s away from this machine's clock" in lines[0]


def test_of_several_signatures_one_has_to_fit() -> None:
    headers = standard(BODY)
    mine = headers["webhook-signature"]
    other = standard(BODY, secret="another secret")["webhook-signature"]
    body = mine.removeprefix("v1,")
    good = [f"{other} {mine}", f"{mine} {other}", f"v1a,{body} {mine}", f"{mine} nonsense", f" {mine}  "]
    bad = [other, f"{other} {other}", f"v2,{body}", f"v1a,{body}", f"v1 {body}", f"v1,{body},{mine}", body, "", "v1,"]
    bad += [
        f"{mine},{mine}",
        f"{mine}, {mine}",
        f"{mine}, {mine[:-1]}x",
        f"v1,{mine}",
        mine.replace("v1", "V1"),
        mine[:20],
        f"{mine}=",
        "é",
    ]
    for given in good:
        assert verified(headers | {"webhook-signature": given}), given
    for given in bad:
        assert not verified(headers | {"webhook-signature": given}), given


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_each_header_is_needed(name: str) -> None:
    assert not verified({key: text for key, text in standard(BODY).items() if key != name})


@pytest.mark.parametrize("time", ["", "x", "1e9", "-5", " 5", "17.5", "9" * 13, "٣", "0x10", "1, 1"])
def test_a_time_that_is_none(time: str) -> None:
    key = base64.b64decode(SECRET[6:])
    mac = base64.b64encode(signing.mac(key, f"a.{time}.".encode() + BODY)).decode()
    assert not verified({"webhook-id": "a", "webhook-timestamp": time, "webhook-signature": f"v1,{mac}"})


@pytest.mark.parametrize("id", ["", "a b", "a.b", "ä", "x" * 256, "a\x00", "a, a"])
def test_an_id_that_is_none(id: str) -> None:
    assert not verified(standard(BODY, id=id))


def test_a_full_stop_cannot_be_moved_from_the_body_into_the_id() -> None:
    """The bytes that are signed say where the id ends, whatever somebody writes into a body."""
    time = standard(b"")["webhook-timestamp"]
    body = f'{{"note": "x.{time}.evil"}}'.encode()
    headers = standard(body, id="a")
    moved = f'a.{headers["webhook-timestamp"]}.{{"note":"x'
    assert verified(headers, body)
    assert not verified(headers | {"webhook-id": moved, "webhook-timestamp": time}, b'evil"}')


@pytest.mark.parametrize(
    "given", ["", "sha256=", "sha1=00", "sha256=" + "0" * 64, "x", "é", "sha256=x, sha256=y", "SHA256="]
)
def test_a_signature_of_github_that_is_none(given: str) -> None:
    assert not verified({"X-Hub-Signature-256": given})


def test_with_both_that_of_standard_webhooks_counts() -> None:
    wrong = {"webhook-signature": "v1,AAAA"}
    assert verified(standard(BODY) | {"X-Hub-Signature-256": "sha256=00"})
    assert not verified(github(BODY) | wrong)
    assert not verified(standard(BODY) | github(BODY) | wrong)


@pytest.mark.parametrize("given", [None, "", " ", "\n", "whsec_", "whsec_not base64!", "whsec_abc"])
def test_no_secret_never_verifies(
    given: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if given is None:
        monkeypatch.delenv(VARIABLE)
    else:
        monkeypatch.setenv(VARIABLE, given)
    for used in ("", " ", given or "", SECRET, "x"):
        if used not in ("whsec_abc", "whsec_not base64!"):
            assert not verified(standard(BODY, secret=used))
        assert not verified(github(BODY, secret=used))
    assert f"the environment variable {VARIABLE}" in caplog.text
    if given and len(given) > len(webhooks.PREFIX):
        assert given not in caplog.text
