"""A spec that names another channel: who was asked learns what becomes of it, who was not is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals.models import Notice
from approvals.rebinding import rebind
from approvals.services import decide
from tests.approvals.editables import a_payment
from tests.approvals.rebinding import rewrite
from tests.fakes_tools import FakeTools
from tests.workbench import acting, to_pause
from workflows.engine import jsontext
from workflows.runs import cancel_run

pytestmark = pytest.mark.django_db(transaction=True)

OLD, MORE = "#payments", "#finance"


def _channel(name: str) -> str:
    return f'{{type: slack, token: "${{SLACK_BOT_TOKEN}}", channel: "{name}"}}'


def _told(key: str, about: str) -> list[str]:
    rows = Notice.objects.filter(request__key=key, about=about).order_by("id")
    places = [jsontext.loads(row.address) for row in rows]
    return [place.get("channel") or place["to"] for place in places]


@pytest.mark.parametrize("end", ["decided", "cancelled"])
def test_the_channel_before_is_brought_up_to_date_and_a_new_one_is_asked(
    end: str, tmp_path: Path, tools: FakeTools, asha: User, olga: User
) -> None:
    spec = a_payment(tmp_path, tools.url, f"notify: [{_channel(OLD)}]")
    run, key = to_pause(spec)
    assert _told(key, "opened") == [OLD]
    mail = "{type: email, to: [cfo@example.org]}"
    rewrite(spec, (f"notify: [{_channel(OLD)}]", f"notify: [{_channel(MORE)}, {mail}]"))
    rebind(key, actor=acting(olga), reason="another channel")
    assert _told(key, "opened") == [OLD, MORE, "cfo@example.org"]
    assert OLD in _told(key, "changed")
    if end == "decided":
        decide(key, approved=True, actor=acting(asha))
    else:
        cancel_run(run, actor=acting(olga), reason="no")
    assert sorted(_told(key, "closed")) == [MORE, OLD]


def test_a_channel_that_stays_is_asked_once(tmp_path: Path, tools: FakeTools, olga: User) -> None:
    spec = a_payment(tmp_path, tools.url, f"notify: [{_channel(OLD)}]")
    _, key = to_pause(spec)
    rewrite(spec, ("[1, two]", "[1, three]"))
    rebind(key, actor=acting(olga), reason="three")
    assert (_told(key, "opened"), _told(key, "changed")) == ([OLD], [OLD])
