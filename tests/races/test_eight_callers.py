"""Eight callers on all five surfaces press at once: one decision, one effect, seven who know who won (scenario 1)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, AuditEntry, RequestStatus
from statestore.models import StateRecord
from tests.commanding import Terminal
from tests.conftest import People, Processes
from tests.counts import count
from tests.fakes_slack import SECRET, FakeSlack
from tests.fakes_tools import FakeTools
from tests.races.callers import AtATerminal, ByALink, Caller, InSlack, InTheAdmin, OverRest, Told, verdict
from tests.served import Served, until
from workflows.models import FINAL, Run, RunEvent
from workflows.reading import run_state
from workflows.registry import SpecFile
from workflows.runs import find_run, newest

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = count(3, 50)


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as fake:
        yield fake


@contextmanager
def callers(
    served: Served, slack: FakeSlack, eight: list[User], env: dict[str, str], logs: Path
) -> Iterator[list[Caller]]:
    """One over REST, one in the admin, two in Slack, two by a link, two at a terminal."""
    with ExitStack() as stack:
        over_rest = OverRest(stack.enter_context(served.as_token(eight[0])), eight[0])
        in_admin = InTheAdmin(stack.enter_context(served.as_session(eight[1])), eight[1])
        in_slack = [InSlack(served.url, slack, user) for user in eight[2:4]]
        by_link = [ByALink(stack.enter_context(served.as_nobody()), user) for user in eight[4:6]]
        terminals = [Terminal(env, logs / f"terminal-{number}") for number in (1, 2)]
        for terminal in terminals:
            stack.callback(terminal.end)
        typing = [
            AtATerminal(terminals[0], eight[6], as_json=True),
            AtATerminal(terminals[1], eight[7], as_json=False),
        ]
        yield [over_rest, in_admin, *in_slack, *by_link, *typing]
    assert [terminal.log.read_text() for terminal in terminals] == ["", ""]


def press_together(pool: ThreadPoolExecutor, all_of_them: list[Caller]) -> list[Told]:
    barrier = threading.Barrier(len(all_of_them))

    def at_the_signal(caller: Caller) -> Told:
        barrier.wait(30)
        return caller.press()

    return list(pool.map(at_the_signal, all_of_them))


def calls_for(tools: FakeTools, since: int) -> Counter[str]:
    return Counter(request.url.rpartition("/")[2] for request in tools.requests[since:])


def begin_over_rest(client: httpx2.Client, number: int) -> tuple[Run, ApprovalRequest]:
    answer = client.post("/runs", json={"agent": "clerk", "input": f"round {number}"})
    assert answer.status_code == 201, answer.text
    run = find_run(answer.json()["id"])
    until(lambda: ApprovalRequest.objects.filter(run=run).exists())
    return run, ApprovalRequest.objects.get(run=run)


def check_round(run: Run, request: ApprovalRequest, told: list[Told]) -> Told:
    """One won; the others were told so; queue, store, audit and run agree with the winner."""
    winners = [one for one in told if one.won]
    assert len(winners) == 1, told
    winner = winners[0]
    assert {(one.outcome, one.by) for one in told if not one.won} == {(winner.asked, winner.who)}, told
    until(lambda: newest(run).status in FINAL)
    state = run_state(run)
    assert state["status"] == ("completed" if winner.asked == "approved" else "rejected"), state
    entry = AuditEntry.objects.get(key=request.key)
    reason = "" if winner.surface == "slack" else winner.who
    assert (entry.act, entry.outcome, entry.actor, entry.reason) == ("decide", winner.asked, winner.who, reason)
    request.refresh_from_db()
    assert request.status == RequestStatus.DECIDED
    assert not StateRecord.objects.filter(key__contains=str(request.key)).exists()
    assert Run.objects.filter(resumed_from=run).count() == 1
    return winner


def check_latecomer(manage: Processes, request: ApprovalRequest, winner: Told) -> None:
    """Who comes after the race, by a command of its own, is told as well."""
    late = manage.run("approvals", "approve", str(request.key), "--as", "approver")
    assert (late.returncode, late.stdout) == (2, "")
    assert f"{winner.asked} by {winner.who} on" in late.stderr


def test_eight_press_at_once_and_one_decision_is_made(
    tmp_path: Path,
    folder: Path,
    spec: SpecFile,
    tools: FakeTools,
    slack: FakeSlack,
    people: People,
    eight: list[User],
    manage: Processes,
    report: Callable[[str], None],
) -> None:
    wins: Counter[str] = Counter()
    told_how: Counter[str] = Counter()
    secrets = {"KAMPONG_SLACK_API_URL": slack.api_url, "SLACK_SIGNING_SECRET": SECRET}
    served = Served(manage, folder, str(folder), **secrets)
    with (
        served.as_token(people.requester) as requester,
        callers(served, slack, eight, manage.env, tmp_path) as all_of_them,
        ThreadPoolExecutor(8) as pool,
    ):
        for number in range(ROUNDS):
            before = len(tools.requests)
            run, request = begin_over_rest(requester, number)
            for place, caller in enumerate(all_of_them):
                caller.get_ready(request, approved=(place + number) % 2 == 0)
            told = press_together(pool, all_of_them)
            winner = check_round(run, request, told)
            later = {"pay": 1, "receipt": 1} if winner.asked == verdict(True) else {}
            assert calls_for(tools, before) == {"invoice": 1, **later}
            wins[f"{winner.surface} {winner.asked}"] += 1
            told_how.update(one.code for one in told if not one.won)
    check_latecomer(manage, request, winner)
    assert served.trouble() == []
    assert tools.failures == []
    finals = RunEvent.objects.filter(type__in=["completed", "rejected"]).count()
    assert finals == ROUNDS == AuditEntry.objects.exclude(act="link").count()
    report(f"{ROUNDS} rounds of eight callers, one decision each; won by {dict(wins)}; losers were told {told_how}")
