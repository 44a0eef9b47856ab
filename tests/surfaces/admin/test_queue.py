"""The list of what waits: complete, in order, in pages that do not shift, and never more than a line of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest
from approvals.services import decide
from tests.conftest import Clock, People
from tests.surfaces.admin import scenes
from tests.surfaces.admin.conftest import QUEUE
from tests.workbench import acting, begin, to_pause, work
from workflows.models import Run
from workflows.registry import SpecFile

SignedIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approver(people: People, signed_in: SignedIn) -> Client:
    return signed_in(people.approver)


def _picks(page: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'name="pick" value="(\d+)"', page)]


def test_a_row_says_who_asks_which_step_what_will_run_and_how_long_it_has_left(
    approver: Client, paying: SpecFile, people: People, clock: Clock
) -> None:
    _, key = to_pause(paying, actor=acting(people.requester))
    clock.advance(2 * 86400 + 60)
    page = approver.get(QUEUE).content.decode()
    row = page[page.index("<tbody>") : page.index("</tbody>")]
    for text in ("payer", "pay", "Call the tool pay", "requester", "4 days 23 hours", "2 days ago"):
        assert text in row, text
    assert key not in page
    assert "120" not in re.sub(r"<[^>]*>", "", row), "what is sent is read on the page of the request"


def test_an_empty_queue_says_what_would_fill_it(approver: Client, people: People) -> None:
    page = approver.get(QUEUE).content.decode()
    assert "Nothing waits for you." in page
    assert "manage.py run_spec" in page
    assert "No request fits these filters." in approver.get(QUEUE + "?q=nothing").content.decode()


def test_it_narrows_by_status_agent_and_words(approver: Client, tmp_path: Path, people: People) -> None:
    first, second = scenes.asking(tmp_path, agent_id="alpha"), scenes.asking(tmp_path, agent_id="beta")
    (_, decided), (_, open_alpha), (_, open_beta) = to_pause(first), to_pause(first), to_pause(second)
    decide(decided, approved=False, actor=acting(people.approver))
    pks = {str(key): pk for key, pk in ApprovalRequest.objects.values_list("key", "pk")}

    def shown(query: str) -> set[int]:
        page = approver.get(QUEUE + query).content.decode()
        return {int(pk) for pk in re.findall(r"approvalrequest/(\d+)/decide/", page)}

    assert shown("") == {pks[open_alpha], pks[open_beta]}
    assert shown("?agent=beta") == {pks[open_beta]}
    assert shown("?status=decided") == {pks[decided]}
    assert shown("?status=all") == set(pks.values())
    ApprovalRequest.objects.filter(pk=pks[decided]).update(status="withdrawn")
    assert shown("?status=cancelled") == {pks[decided]}
    assert "Cancelled or withdrawn" in approver.get(QUEUE).content.decode()
    assert shown("?q=ALPH") == {pks[open_alpha]}
    assert shown("?q=firs") == {pks[open_alpha], pks[open_beta]}
    wrong = approver.get(QUEUE + "?status=nonsense&agent=nobody&after=x&q=%00")
    assert wrong.status_code == 200
    assert "Select a valid choice" in wrong.content.decode()


def test_pages_show_each_request_that_waits_throughout_exactly_once(
    approver: Client, asking: SpecFile, people: People
) -> None:
    for number in range(95):
        begin(asking, input=f"case {number}")
    work()
    ApprovalRequest.objects.update(created_at=ApprovalRequest.objects.order_by("pk")[0].created_at)
    expected = list(ApprovalRequest.objects.order_by("pk").values_list("pk", flat=True))
    seen: list[int] = []
    decided = set()
    address: str | None = ""
    while address is not None:
        page = approver.get(QUEUE + address).content.decode()
        here = _picks(page)
        for pk in here[::2]:
            decide(str(ApprovalRequest.objects.get(pk=pk).key), approved=False, actor=acting(people.approver))
            decided.add(pk)
        if not seen:
            for number in range(5):
                to_pause(asking, input=f"new {number}")
        seen += here
        found = re.search(r'href="(\?[^"]*after=\d+)">Next page', page)
        address = found[1] if found else None
    assert seen[:95] == expected
    assert len(seen) == len(set(seen)) == 100
    assert approver.get(QUEUE).context["waiting_count"] == 100 - len(decided)


def test_the_usual_address_of_a_row_leads_to_its_page(approver: Client, waiting: tuple[Run, str]) -> None:
    pk = ApprovalRequest.objects.get(key=waiting[1]).pk
    answer = approver.get(f"{QUEUE}{pk}/change/")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{QUEUE}{pk}/decide/")
    assert approver.get(f"{QUEUE}x/change/").status_code == 404
