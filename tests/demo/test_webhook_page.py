"""What the pages say of webhooks is what happens: the example spec loads and its commands start one run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.demo.test_pages import blocks, text_of
from tests.served import Served
from tests.signing import SECRET
from workflows.headers import CREDENTIAL_WORDS
from workflows.models import Run
from workflows.spec.load import load


def section(page: str) -> str:
    return text_of(page).partition("## Webhooks\n")[2].partition("\n## ")[0]


def spec_text() -> str:
    (text,) = blocks(section("docs/unattended.md"), "yaml")
    return text


# what a page says has nothing to do with the database
pytestmark = pytest.mark.everyday("sqlite")


def test_the_spec_loads_without_a_note() -> None:
    loaded = load(spec_text())
    assert (loaded.errors, loaded.notes) == ((), ())


def test_the_page_has_the_headers_that_are_not_passed_on() -> None:
    page = " ".join(section("docs/http.md").split())
    for word in CREDENTIAL_WORDS:
        assert f"`{word}`" in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("secret", [SECRET, None])
def test_the_commands_start_one_run(secret: str | None, tmp_path: Path, manage: Processes) -> None:
    (tmp_path / "orders.yaml").write_text(spec_text())
    (script,) = blocks(section("docs/unattended.md"), "sh")
    env = {name: text for name, text in os.environ.items() if name != "HOOK_SECRET"}
    if secret is None:
        line = script.partition("\n")[0] + '\nprintf %s "$HOOK_SECRET"'
        secret = subprocess.run(["sh", "-ec", line], env=env, capture_output=True, text=True, check=True).stdout
    served = Served(manage, tmp_path, str(tmp_path / "orders.yaml"), HOOK_SECRET=secret)
    script = script.replace("http://127.0.0.1:8080", served.url)

    def send(**variables: str) -> dict[str, object]:
        done = subprocess.run(
            ["sh", "-ec", script], env=env | variables, capture_output=True, text=True, check=True, timeout=60
        )
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    first, second = send(HOOK_SECRET=secret), send(HOOK_SECRET=secret)
    assert first["success"] is True, first
    assert second["id"] == first["id"] == str(Run.objects.get().uuid)
    assert send(HOOK_SECRET="whsec_" + "A" * 44)["code"] == "not_authenticated"
    assert served.trouble() == []
    assert secret not in served.said()
