"""What every page carries, and what changes behind a TLS proxy in production."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client

from kampong.security import POLICY, ContentSecurityPolicyMiddleware
from tests.conftest import ROOT


@pytest.mark.django_db
def test_pages_load_nothing_from_elsewhere(client: Client) -> None:
    response = client.get("/admin/login/")
    assert response.status_code == 200
    assert response["Content-Security-Policy"] == POLICY
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//[^"']*""", response.content.decode())


def test_a_page_may_bring_a_policy_of_its_own() -> None:
    own = HttpResponse(headers={"Content-Security-Policy": "default-src 'none'"})
    answered = ContentSecurityPolicyMiddleware(lambda request: own).process_response(HttpRequest(), own)
    assert answered.headers["Content-Security-Policy"] == "default-src 'none'"


PROBE = """
import json, django
django.setup()
from django.conf import settings
from django.test import Client
client = Client()
def ask(path, **headers):
    response = client.get(path, headers={"host": "kampong.example.org", **headers})
    return [response.status_code, response.get("Location", ""), response.get("Strict-Transport-Security", "")]
print(json.dumps({
    "plain": ask("/static/admin/css/base.css"),
    "forwarded": ask("/static/admin/css/base.css", **{"x-forwarded-proto": "https"}),
    "cookies": [settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE],
}))
"""


once = pytest.mark.only("sqlite")  # the probe reaches no database, so one run says all


def probe(trust: str) -> dict[str, list[object]]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("KAMPONG_")} | {
        "DJANGO_SETTINGS_MODULE": "kampong.settings",
        "KAMPONG_PRODUCTION": "1",
        "KAMPONG_TRUST_FORWARDED_PROTO": trust,
        "ALLOWED_HOSTS": "kampong.example.org",
    }
    command = [sys.executable, "-c", PROBE]
    finished = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=True)
    answer: dict[str, list[object]] = json.loads(finished.stdout)
    return answer


@once
def test_a_trusted_proxy_is_believed_and_plain_requests_are_sent_to_the_encrypted_address() -> None:
    answer = probe(trust="1")
    assert answer["plain"][:2] == [301, "https://kampong.example.org/static/admin/css/base.css"]
    assert answer["forwarded"][0] == 200
    assert str(answer["forwarded"][2]).startswith("max-age=")
    assert answer["cookies"] == [True, True]


@once
def test_the_forwarded_header_is_not_believed_unless_told() -> None:
    answer = probe(trust="0")
    assert answer["forwarded"][0] == 200
    assert answer["forwarded"][2] == "", "the answer took a plain request for an encrypted one"
