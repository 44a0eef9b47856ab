"""What keeps a webhook from being believed, or its deliveries from being told apart, is said before one comes."""

from __future__ import annotations

import pytest
from django.test.utils import override_settings

from tests.hooks import SIGNED, TEXT, VARIABLE
from tests.signing import SECRET
from tests.workflows.test_doctor import found, patient
from workflows.spec.load import load

HOOK = f"  trigger: {{type: webhook, {SIGNED}}}\n  model: {{provider: ollama, name: m}}\n"
PLAIN = "  model: {provider: ollama, name: m}\n"


@pytest.mark.parametrize(
    ("secret", "words"),
    [("", "is not set or empty"), ("whsec_no base64", "no base64 after it")],
)
def test_a_secret_that_cannot_be_used_fails(secret: str, words: str) -> None:
    for hook in (patient(HOOK, "1.2", HOOK_SECRET=secret), patient(HOOK, "1.2")):
        (message,) = found(hook, "fail", "webhook")
        assert VARIABLE in message
        assert words in message or "is not set" in message
        assert "every delivery is refused with 401" in message
        assert "no base64 " not in message.replace("no base64 after", "")


def test_a_secret_that_is_there_passes_and_is_not_told() -> None:
    (message,) = found(patient(HOOK, "1.2", HOOK_SECRET=SECRET), "pass", "webhook")
    assert VARIABLE in message
    assert SECRET not in message


def test_the_setting_counts_for_the_older_versions_and_is_told_for_a_newer() -> None:
    with override_settings(KAMPONG_WEBHOOK_SECRETS={"ticket-desk": "OTHER"}):
        for version in ("1.0", "1.1"):
            assert "OTHER" in found(patient(PLAIN, version), "fail", "webhook")[0]
            assert "OTHER" in found(patient(PLAIN, version, OTHER="s"), "pass", "webhook")[0]
        assert "is not read for it" in found(patient(PLAIN, "1.2"), "warn", "webhook")[0]
        assert found(patient(PLAIN, "1.2"), "fail", "webhook") == []
    for version in ("1.0", "1.1", "1.2"):
        for status in ("pass", "warn", "fail"):
            assert found(patient(PLAIN, version), status, "webhook") == []


@pytest.mark.parametrize(
    ("dedupe", "words"),
    [
        ("{{ trigger.id", "holds no expression"),
        ("trigger.id", "holds no expression"),
        ("{{ trigger.( }}", "dedupe"),
        ("{{ }}", "dedupe"),
        ("{{ look.approved }}", "look"),
        ("{{ nothing.id }}", "nothing"),
        ("{{ cursor }}", "cursor"),
        ("", "dedupe"),
    ],
)
def test_a_template_that_cannot_work_is_an_error_of_the_file(dedupe: str, words: str) -> None:
    loaded = load(TEXT.replace("TRIGGER", f'{{type: webhook, dedupe: "{dedupe}"}}'))
    assert loaded.spec is None
    assert [error for error in loaded.errors if "trigger.dedupe" in error.where and words in str(error)], loaded.errors
