"""An argument whose bytes are no UTF-8 reaches no database: PostgreSQL could not keep it, SQLite would."""

from __future__ import annotations

import pytest

from tests.conftest import People
from tests.surfaces.cli.running import command

pytestmark = pytest.mark.django_db(transaction=True)

#: What Python makes of the byte FF in an argument.
BYTES = "\udcff"


@pytest.mark.parametrize(
    "words",
    [
        ("triggers", "show", BYTES),
        ("triggers", "free-lock", BYTES, "--reason", "stuck"),
        ("triggers", "free-lock", "clerk", "--reason", BYTES),
        ("approvals", "show", BYTES),
        ("approvals", "list", "--agent", BYTES),
        ("approvals", "list", "--as", BYTES),
        ("runs", "show", BYTES),
        ("runs", "cancel", BYTES),
        ("audit", "receipt", BYTES),
        ("api_token", BYTES),
        ("run_spec", BYTES, "--input", ""),
        ("check_spec", BYTES),
        ("doctor", BYTES),
    ],
    ids=lambda words: " ".join(words).replace(BYTES, "FF"),
)
def test_it_is_one_line_and_a_code(people: People, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setenv("KAMPONG_CLI_USER", people.operator.get_username())
    told = command(*words)
    assert told.code in (1, 2, 64), told
    assert (told.err or told.out).strip(), told
    assert "Traceback" not in told.err
    assert "UnicodeEncodeError" not in told.err
