"""No credential becomes a trigger header, however its name is spelled."""

from __future__ import annotations

import pytest

from workflows.headers import passed_on


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "Set-Cookie",
        "X-Auth-Token",
        "X-Hub-Signature-256",
        "x_api_key",
        "X-API-Key",
        "ApiKey",
        "client_secret",
        "Password",
        "aws-credential",
    ],
)
def test_a_name_that_looks_like_a_credential_is_dropped(name: str) -> None:
    assert passed_on([(name, "x")]) == {}


def test_other_headers_arrive_in_lower_case_and_repeated_ones_joined() -> None:
    assert passed_on([("X-Event", "a"), ("x-event", "b"), ("Idempotency-Key", "k")]) == {
        "x-event": "a, b",
        "idempotency-key": "k",
    }
