"""The queue for a person with many items: filters, counts, what is folded, and what the header says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.approvals.policies import a_sign, member
from tests.conftest import Clock, People
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import QUEUE, RUNS
from tests.surfaces.queued import many
from tests.workbench import acting, to_pause
from workflows.models import Run
from workflows.registry import SpecFile, read_spec

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _pk(key: str) -> int:
    return ApprovalRequest.objects.get(key=key).pk


def _shown(page: Any) -> set[int]:
    return {int(pk) for pk in re.findall(r"approvalrequest/(\d+)/decide/", page.content.decode())}


def _option(page: Any, value: str) -> str:
    found = re.search(rf'<option value="{re.escape(value)}"[^>]*>([^<]*)<', page.content.decode())
    return found[1] if found else ""


def test_every_filter_narrows_and_its_choices_say_how_many_wait_behind_them(
    tmp_path: Path, approver: Client, people: People, clock: Clock
) -> None:
    old = _pk(to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))[1])
    clock.advance(2 * 3600)
    hasty = _pk(to_pause(a_sign(tmp_path, "expires_in: 30m"))[1])
    other = _pk(to_pause(scenes.asking(tmp_path, agent_id="other"))[1])
    page = approver.get(QUEUE)
    assert _shown(page) == {old, hasty, other}
    for query, found in {
        "mine=me": {hasty, other},
        "agent=other": {other},
        "step=sign": {old, hasty},
        "group=finance": {old},
        "age=1h": {old},
        "age=4h": set(),
        "expiring=1h": {hasty},
        "expiring=1d": {hasty},
        "q=REALLY": {old, hasty},
        "mine=me&step=sign": {hasty},
    }.items():
        assert _shown(approver.get(f"{QUEUE}?{query}")) == found, query
    assert _option(page, "me") == "Me (2)"
    assert _option(page, "other") == "other (1)"
    assert _option(page, "sign") == "sign (2)"
    assert _option(page, "finance") == "finance (1)"
    assert "<strong>3</strong> wait for a decision, <strong>2</strong> of them for you." in page.content.decode()
    assert "<strong>1</strong> behind these filters." in approver.get(f"{QUEUE}?age=1h").content.decode()
    assert _shown(approver.get(f"{QUEUE}?age=2h&mine=x")) == {old, hasty, other}, "what is no choice filters nothing"
    assert _shown(approver.get(f"{QUEUE}?group=nobody")) == set()


def test_a_whole_key_finds_its_request_whatever_became_of_it(
    approver: Client, asking: SpecFile, people: People
) -> None:
    (_, key), (_, other) = to_pause(asking), to_pause(asking)
    assert _shown(approver.get(f"{QUEUE}?q=%20{key.upper()}")) == {_pk(key)}
    decide(key, approved=False, actor=acting(people.approver))
    assert _shown(approver.get(f"{QUEUE}?q={key}")) == {_pk(key)}
    assert _shown(approver.get(f"{QUEUE}?q={key}&status=expired")) == set()
    assert _shown(approver.get(f"{QUEUE}?q={key[:8]}")) == set()
    assert _pk(other)


def test_links_between_pages_keep_the_filters(approver: Client, asking: SpecFile) -> None:
    run, _ = to_pause(asking)
    many(run, 60)
    page = approver.get(f"{QUEUE}?agent=clerk&mine=me").content.decode()
    following = re.search(r'href="(\?[^"]*)">Next page', page)
    assert following is not None
    assert following[1].startswith("?agent=clerk&amp;mine=me&amp;after=")
    page = approver.get(QUEUE + following[1].replace("&amp;", "&")).content.decode()
    assert 'href="?agent=clerk&amp;mine=me">Back to the start' in page


def test_identical_actions_stand_together_each_with_a_tick_of_its_own(
    approver: Client, asking: SpecFile, people: People
) -> None:
    alike = [to_pause(asking, input="the same", actor=acting(people.requester))[1] for _ in range(2)]
    _, other = to_pause(asking, input="another")
    alike.append(to_pause(asking, input="the same")[1])
    page = approver.get(QUEUE)
    text = page.content.decode()
    groups = page.context["groups"]
    assert [len(group.rows) for group in groups] == [3, 1]
    assert groups[0].picks == ",".join(str(_pk(key)) for key in alike)
    assert "3 like this" in text
    assert "requester and others" in text
    assert _shown(page) == {_pk(key) for key in [*alike, other]}
    ticked = approver.post(f"{QUEUE}bulk/", {"act": "reject", "pick": [groups[0].picks, str(_pk(alike[0]))]})
    assert [row["pk"] for row in ticked.context["rows"]] == [_pk(key) for key in alike]


def test_what_would_be_done_under_another_policy_is_not_alike(tmp_path: Path, approver: Client) -> None:
    for policy in ("require_reason: always", "require_reason: never"):
        to_pause(a_sign(tmp_path, policy))
    assert [len(group.rows) for group in approver.get(QUEUE).context["groups"]] == [1, 1]


def test_what_ends_soon_and_what_nobody_can_decide_is_marked(tmp_path: Path, approver: Client) -> None:
    to_pause(a_sign(tmp_path, "expires_in: 40m"))
    to_pause(a_sign(tmp_path, "expires_in: 3h"))
    to_pause(a_sign(tmp_path, "approvers: {groups: [ghosts]}"))
    page = approver.get(QUEUE).content.decode()
    assert re.search(r'k-badge k-bad">39 minutes<', page)
    assert re.search(r'k-badge k-wait">2 hours 59 minutes<', page)
    assert "6 days 23 hours" in page
    assert "Nobody can satisfy this" in page
    assert "nobody of members of ghosts may approve today" in page


def test_what_nobody_can_decide_is_marked_also_where_it_is_folded(tmp_path: Path, approver: Client) -> None:
    spec = a_sign(tmp_path, "approvers: {groups: [ghosts]}")
    for _ in range(2):
        to_pause(spec)
    page = approver.get(QUEUE).content.decode()
    assert page.count("2 like this") == 1
    assert page.count("Nobody can satisfy this") == 1


def test_a_changed_spec_is_marked_in_the_list_and_as_many_queries_are_made(tmp_path: Path, approver: Client) -> None:
    spec = a_sign(tmp_path, "require_reason: never")
    text = spec.path.read_text()
    to_pause(spec)
    approver.get(QUEUE)
    with CaptureQueriesContext(connection) as before:
        assert "The spec changed" not in approver.get(QUEUE).content.decode()
    spec.path.write_text(text.replace("Really?", "Truly?"))
    to_pause(read_spec(spec.path))
    with CaptureQueriesContext(connection) as after:
        page = approver.get(QUEUE).content.decode()
    assert page.count("The spec changed") == 1, "the one that was asked before"
    assert len(after) == len(before)
    spec.path.unlink()
    assert approver.get(QUEUE).content.decode().count("The spec changed") == 2


def test_the_header_counts_for_those_who_may_decide_alone(tmp_path: Path, signed_in: SignedIn, people: People) -> None:
    to_pause(a_sign(tmp_path, "approvers: {groups: [finance]}"))
    run, _ = to_pause(a_sign(tmp_path, "require_reason: never"))
    asha = member("asha", "finance")
    Group.objects.get_or_create(name="unused")

    def says(user: User, address: str = RUNS) -> str:
        found = re.search(r"Waiting for you: <strong>([^<]*)<", signed_in(user).get(address).content.decode())
        return found[1] if found else ""

    assert says(people.approver) == "1"
    assert says(asha) == "2"
    assert says(asha, QUEUE) == "2"
    assert says(people.operator) == "", "sees the queue and decides nothing"
    assert says(people.requester) == ""
    assert says(people.stranger, "/admin/") == ""
    many(run, 1000)
    assert says(asha) == "1,000+"
    assert signed_in(asha).get(f"{QUEUE}count/").json() == {"waiting": "1,000+"}
    assert signed_in(people.operator).get(f"{QUEUE}count/").json() == {"waiting": "0"}
    assert signed_in(people.stranger).get(f"{QUEUE}count/").status_code == 403
    assert Client().get(f"{QUEUE}count/").status_code == 302


def test_the_header_costs_two_queries(people: People, signed_in: SignedIn, waiting: tuple[Run, str]) -> None:
    """Who is away or handed something on, and the count."""
    browser = signed_in(people.approver)
    browser.get(RUNS)
    with CaptureQueriesContext(connection) as caught:
        browser.get(RUNS)
    asked = [query["sql"] for query in caught if "approvals_approvalrequest" in query["sql"]]
    assert len(asked) == 2, asked


def test_the_list_alone_is_what_a_page_fetches_again(approver: Client, waiting: tuple[Run, str]) -> None:
    part = approver.get(QUEUE, headers={"X-Kampong-Part": "list"})
    text = part.content.decode()
    assert "<html" not in text
    assert 'role="search"' not in text
    assert _shown(part) == {_pk(waiting[1])}
    assert "no-store" in part.headers["Cache-Control"]
    assert "csrfmiddlewaretoken" in text


def test_an_agent_and_a_person_write_nothing_but_text_into_the_list(approver: Client, asking: SpecFile) -> None:
    hostile = "<script>alert(1)</script>{{ 7 }}\"'"
    to_pause(asking, input=hostile)
    ApprovalRequest.objects.update(step=hostile, reason=hostile)
    for query in ("", "?q=%3Cscript%3E", "?step=%3Cscript%3E"):
        page = approver.get(QUEUE + query).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
