"""The fixtures that other suites stand on: child processes, threads, people and the clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from tests.conftest import Clock, People, Processes, allow
from tests.emptying import MANY

COUNT_USERS = "from django.contrib.auth.models import User; print('users:', User.objects.count())"
ADD_USER = "from django.contrib.auth.models import User; User.objects.create(username='from-a-child')"


def test_a_child_process_sees_what_the_test_wrote_and_the_other_way_round(manage: Processes) -> None:
    User.objects.create(username="from-the-test")
    seen = manage.run("shell", "--command", COUNT_USERS)
    assert "users: 1" in seen.stdout, seen.stderr
    assert manage.run("shell", "--command", ADD_USER).returncode == 0
    assert set(User.objects.values_list("username", flat=True)) == {"from-the-test", "from-a-child"}


def test_what_a_child_wrote_is_gone_in_the_next_test(manage: Processes) -> None:
    assert not User.objects.exists()
    assert manage.run("shell", "--command", ADD_USER).returncode == 0


def test_a_child_that_still_runs_is_ended_with_its_test(process_env: dict[str, str]) -> None:
    processes = Processes(process_env)
    child = processes.start("shell", "--command", "import time; time.sleep(600)")
    processes.end()
    assert child.returncode is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [1, MANY + 1, 2])
def test_what_a_test_commits_is_gone_in_the_next_and_what_migrating_left_is_there(rows: int, people: People) -> None:
    assert User.objects.count() == 4, "the people of this test alone"
    assert not Group.objects.exists()
    assert ContentType.objects.get_for_model(User).pk == ContentType.objects.get(app_label="auth", model="user").pk
    assert people.operator.has_perm("workflows.operate_run")
    Group.objects.bulk_create(Group(name=f"group {number}") for number in range(rows))
    Group.objects.first().permissions.add(Permission.objects.get(codename="operate_run"))  # type: ignore[union-attr]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_what_migrating_left_is_put_back_after_a_test_that_changed_it(turn: int) -> None:
    operate = Permission.objects.get(codename="operate_run", content_type__app_label="workflows")
    Permission.objects.create(codename="fly", name="Can fly", content_type=operate.content_type)
    assert Permission.objects.filter(codename="fly").count() == 1
    operate.delete()


@pytest.mark.django_db(transaction=True)
def test_threads_share_the_database_of_the_test() -> None:
    def add(number: int) -> None:
        try:
            User.objects.create(username=f"thread-{number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert User.objects.count() == 12


def test_a_child_runs_under_the_clock_of_the_test(manage: Processes, clock: Clock) -> None:
    script = (
        "from statestore.clock import now; import datetime; print((now() - datetime.datetime.now(datetime.UTC)).days)"
    )
    clock.advance(10 * 24 * 3600 + 60)
    assert manage.run("shell", "--command", script).stdout.strip().splitlines()[-1:] == ["10"]
    clock.reset()
    assert manage.run("shell", "--command", script).stdout.strip().splitlines()[-1:] in (["0"], ["-1"])


def test_the_clock_moves_both_ways_and_leaves_nothing_behind(clock: Clock) -> None:
    path = Path(os.environ["KAMPONG_CLOCK_FILE"])
    clock.advance(90)
    clock.advance(-30)
    assert float(path.read_text()) == 60
    clock.reset()
    assert not path.exists()


def test_the_people_may_do_what_their_names_say(people: People) -> None:
    assert people.approver.has_perms(["approvals.decide", "approvals.view_request", "workflows.view_run"])
    assert not people.approver.has_perm("workflows.operate_run")
    assert people.requester.has_perm("workflows.start_run")
    assert not people.requester.has_perm("approvals.decide")
    assert people.operator.has_perms(["workflows.operate_run", "approvals.rebind"])
    assert not people.stranger.get_all_permissions()
    assert all(one.check_password(people.password) for one in (people.approver, people.stranger))


def test_a_permission_that_no_model_declares_is_an_error(people: People) -> None:
    with pytest.raises(AssertionError, match=r"approvals\.fly"):
        allow(people.stranger, "approvals.fly")


def test_break_glass_can_be_given(people: People) -> None:
    assert allow(people.approver, "approvals.break_glass").has_perm("approvals.break_glass")


def test_a_fact_reaches_the_report(report: Callable[[str], None]) -> None:
    from tests import reporting

    report("measured")
    assert reporting._facts.pop() == {"suite": "project", "test": "test_a_fact_reaches_the_report", "text": "measured"}
