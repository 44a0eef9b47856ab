"""What deciding costs: nothing more where the policy says nothing, and the same however many voted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from approvals import policy
from approvals.delegating import delegate
from approvals.eligible import deciders
from approvals.models import ApprovalRequest
from approvals.recall import withdraw
from approvals.services import decide
from tests.approvals.policies import a_sign, member, text_of, written
from tests.conftest import People
from tests.workbench import ASKING, acting, begin, key_of, to_pause, write_spec
from workflows import registry
from workflows.advance import advance

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def asked() -> Iterator[list[str]]:
    """The statements of the block, without those that begin and end a transaction."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as caught:
        yield found
    words = [query["sql"] for query in caught.captured_queries]
    found += [text for text in words if not text.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE"))]


def test_a_plain_pause_and_its_decision_ask_nothing_that_their_policy_does_not_need(
    tmp_path: Path, people: People
) -> None:
    spec = write_spec(tmp_path, ASKING)
    to_pause(spec)  # what a process reads once is read
    run = begin(spec)
    with asked() as opening:
        advance(run.workspace, str(run.uuid))
    assert len(opening) == 8, opening
    key = key_of(run)
    with asked() as approving:
        outcome = decide(key, approved=True, actor=acting(people.approver))
    assert len(approving) == 17, approving
    with asked() as going_on:
        advance(run.workspace, str(outcome.run.uuid))
    assert len(going_on) == 9, going_on
    key = key_of(outcome.run)
    with asked() as rejecting:
        decide(key, approved=False, actor=acting(people.approver))
    assert len(rejecting) == 18, rejecting
    desk = ("audience", "notice", "delegation", "absence", "edit", "look", "vote")
    for text in [*opening, *approving, *going_on, *rejecting]:
        assert not any(f'"approvals_{name}"' in text for name in desk), text


@pytest.mark.parametrize(
    "held", ["approvers: {quorum: 9}", "approvers: {groups: [board], quorum: 9, four_eyes: true, delegate: true}"]
)
def test_a_vote_costs_the_same_however_many_voted_before(held: str, tmp_path: Path) -> None:
    _, key = to_pause(a_sign(tmp_path, held))
    board = [member(f"board-{number}", "board") for number in range(8)]
    costs = []
    for voter in board:
        with asked() as statements:
            decide(key, approved=True, actor=acting(voter))
        costs.append(len(statements))
    assert len(set(costs[2:])) == 1, costs
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    with asked() as statements:
        assert len(policy.votes(request)) == 8
    assert len(statements) <= 8, statements


def test_stand_ins_cost_the_same_however_many_there_are(tmp_path: Path) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [board], quorum: 9, delegate: true}"))
    givers = [member(f"giver-{number}", "board") for number in range(4)]
    takers = [member(f"taker-{number}") for number in range(4)]
    costs = []
    for giver, taker in zip(givers, takers, strict=True):
        delegate(key, to=taker.username, actor=acting(giver))
        decide(key, approved=True, actor=acting(taker))
        request = ApprovalRequest.objects.select_related("run").get(key=key)
        with asked() as statements:
            votes = policy.votes(request)
        assert votes[-1].for_user_id == giver.pk
        costs.append(len(statements))
    assert len(set(costs)) == 1, costs


def test_whom_to_remind_costs_the_same_however_many_stand_in(tmp_path: Path) -> None:
    _, key = to_pause(a_sign(tmp_path, "approvers: {groups: [board], delegate: true}"))
    givers = [member(f"giver-{number}", "board") for number in range(4)]
    costs = []
    for number, giver in enumerate(givers):
        taker = member(f"taker-{number}")
        delegate(key, to=taker.username, actor=acting(giver))
        request = ApprovalRequest.objects.select_related("run").get(key=key)
        with asked() as statements:
            assert taker.pk in deciders(request)
        costs.append(len(statements))
    assert len(set(costs)) == 1, costs


def test_where_another_backend_has_a_say_each_voter_is_asked_by_itself(tmp_path: Path, settings: Settings) -> None:
    """A backend that refuses somebody is believed, as it is where this person decides alone."""
    _, key = to_pause(a_sign(tmp_path, "approvers: {quorum: 3}"))
    ana, bo = member("ana"), member("bo")
    for voter in (ana, bo):
        decide(key, approved=True, actor=acting(voter))
    request = ApprovalRequest.objects.select_related("run").get(key=key)
    assert [vote.label for vote in policy.votes(request)] == ["ana", "bo"]
    own = "django.contrib.auth.backends.ModelBackend"
    settings.AUTHENTICATION_BACKENDS = ["tests.approvals.backends.NotBo", own]
    assert [vote.label for vote in policy.votes(request)] == ["ana"]
    assert not policy.may_decide(request, acting(User.objects.get(username="bo"))).allowed


def _inside(statements: list[str]) -> list[str]:
    """Those between the beginning and the end of the transaction."""
    first = next(number for number, text in enumerate(statements) if text.startswith("BEGIN"))
    return statements[first:]


def test_nothing_is_read_of_a_spec_or_of_what_was_looked_at_inside_the_transaction(
    tmp_path: Path,
) -> None:
    """Both would hold a lock meanwhile: a spec is parsed, and what is clipped is known by rendering all of it."""
    held = "recall: 1h, approvers: {groups: [board], delegate: true}"
    spec = written(tmp_path, text_of(f'{{step: sign, type: approval, message: "{{{{ input }}}}", {held}}}'))
    _, key = to_pause(spec, input="x" * 30_000)
    member("taker")
    giver = acting(member("giver", "board"), "admin")
    acts: dict[str, Callable[[], object]] = {
        "delegate": lambda: delegate(key, to="taker", actor=giver),
        "decide": lambda: decide(key, approved=True, actor=giver),
        "withdraw": lambda: withdraw(key, actor=giver, reason="wait"),
    }
    for name, act in acts.items():
        registry.pinned.cache_clear()
        with CaptureQueriesContext(connection) as caught:
            act()
        statements = [query["sql"] for query in caught.captured_queries]
        assert any('"workflows_specversion"' in text for text in statements), name
        assert (name == "decide") is any('"approvals_look"' in text for text in statements), name
        for text in _inside(statements):
            assert '"workflows_specversion"' not in text, (name, text)
            assert '"approvals_look"' not in text, (name, text)
