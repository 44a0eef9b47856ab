"""What a newcomer does with `make demo`, done with real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.demo.starting import Demo, copy_of_the_product, demos, free_ports, get, is_alive, until

# It brings a database of its own: a SQLite file in the folder of the copy, as a newcomer has it.
pytestmark = pytest.mark.only("sqlite")

Starting = Callable[[], Demo]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for most tests here: in whatever order they come, they go on with one database, as a newcomer does."""
    return copy_of_the_product(tmp_path_factory.mktemp("newcomer"))


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """Kampong's port and the service's."""
    first, second = free_ports(2)
    return first, second


@pytest.fixture
def start(product: Path, ports: tuple[int, int]) -> Iterator[Starting]:
    """Starts the demo in the copy."""
    with demos(product, DEMO_PORT=str(ports[0]), DEMO_SERVICE_PORT=str(ports[1])) as starting:
        yield starting


@pytest.fixture
def start_afresh(tmp_path: Path, ports: tuple[int, int]) -> Iterator[Starting]:
    """Starts the demo in a copy that was never started."""
    product = copy_of_the_product(tmp_path)
    with demos(product, DEMO_PORT=str(ports[0]), DEMO_SERVICE_PORT=str(ports[1])) as starting:
        yield starting


#: What the schedule and the poll among the examples call whenever it is time.
BY_THEMSELVES = ("GET /service/orders?since", "POST /service/shipments", "GET /service/prices", "PUT /service/sheet")


def calls(ports: tuple[int, int]) -> dict[str, int]:
    """How often each route was called because somebody did something."""
    counts: dict[str, int] = get(ports[1], "/")["calls"]
    return {route: count for route, count in counts.items() if count and route not in BY_THEMSELVES}


def shipped(ports: tuple[int, int]) -> list[int]:
    """How often each of the orders that are polled was shipped."""
    return list(get(ports[1], "/counts")["orders"].values())


def waiting_key(demo: Demo) -> str:
    return demo.found(r"/approvals/([0-9a-f-]{36})$")


def wait_for_pause(port: int, run: str, token: str) -> None:
    until(lambda: get(port, f"/runs/{run}", token)["state"]["status"] == "awaiting_approval", f"{run} waits")


def test_a_run_killed_while_it_waits_goes_on_after_the_next_start_and_repeats_nothing(
    start_afresh: Starting, ports: tuple[int, int]
) -> None:
    first = start_afresh().ready()
    key, token = waiting_key(first), first.fact("token")
    before = calls(ports)
    assert before == {"GET /service/orders": 1, "POST /v1/chat/completions": 1}
    until(lambda: shipped(ports) == [1, 1], "what is polled runs by itself")
    waits = get(ports[0], "/approvals", token)["approvals"]
    assert [one["agent"] for one in waits] == ["refund-clerk"], "and asks nobody"

    os.kill(int(first.found(r"kill -9 (\d+)")), signal.SIGKILL)
    assert first.wait() == 1
    assert "The server was ended by SIGKILL. What waits is stored" in first.printed

    second = start_afresh().ready()
    assert waiting_key(second) == key
    assert second.fact("token") == token
    assert second.fact("password") == first.fact("password")
    approve = next(line for line in second.lines("curl") if line.endswith(f"/approvals/{key}/approve"))
    said = json.loads(second.paste(approve).stdout)
    assert said["state"]["status"] == "completed"
    assert said["state"]["finalOutput"]["settle"]["id"] == "R-1"
    assert calls(ports) == before | {"POST /service/refunds": 1, "POST /service/messages": 1}
    assert shipped(ports) == [1, 1]

    again = json.loads(second.paste(approve).stdout)
    assert (again["code"], again["decision"]["by"]) == ("approval_not_found", "demo")


def test_every_printed_line_works_as_it_stands(start: Starting, ports: tuple[int, int]) -> None:
    demo = start().ready()
    key, token = waiting_key(demo), demo.fact("token")

    for line in demo.lines("curl"):
        if "/events" in line or "/approve" in line:
            continue
        said = json.loads(demo.paste(line).stdout)
        assert said.get("success", True), said
        if line.endswith(("/runs", "/webhook/support-desk")):
            wait_for_pause(ports[0], said["id"], token)
    python = [line for line in demo.lines("") if " manage.py approvals " in line]
    listed, shown, approved = (demo.paste(line) for line in python)
    assert key in listed.stdout, listed.stderr
    assert "A-1042" in shown.stdout, shown.stderr
    assert (approved.returncode, "completed" in approved.stdout) == (0, True), approved.stderr
    stream = demo.paste(next(line for line in demo.lines("curl") if line.endswith("/events")))
    assert '"status":"completed"' in stream.stdout

    before = calls(ports)
    tries = [line for line in demo.lines("") if " manage.py run_spec " in line]
    assert len(tries) == 4
    for line in tries:
        answered = demo.paste(line, "y\ny\n")
        assert (answered.returncode, "waits for a decision" in answered.stdout) == (0, True), answered
    assert {route: more for route, count in calls(ports).items() if (more := count - before.get(route, 0))} == {
        "GET /service/orders": 2,
        "POST /service/refunds": 1,
        "POST /service/cases": 1,
        "POST /service/messages": 2,
        "POST /service/payments": 1,
        "POST /service/tickets": 1,
        "POST /v1/chat/completions": 4,
    }
    assert "known are A-1042" in get(ports[1], "/service/orders/A-1")["error"]
    assert "GET / lists them" in get(ports[1], "/nothing")["error"]


def test_a_signal_stops_all_of_it(start: Starting) -> None:
    demo = start().ready()
    below = demo.below()
    assert len(below) >= 2

    assert demo.end(signal.SIGTERM) == 0

    assert "Stopped." in demo.printed
    assert [pid for pid in below if is_alive(pid)] == []


def test_nothing_outlives_a_demo_that_is_killed(start: Starting) -> None:
    demo = start().ready()
    below = demo.below()

    demo.end(signal.SIGKILL)

    until(lambda: not any(is_alive(pid) for pid in below), "all children have ended")


def test_the_password_is_kept_for_its_owner_and_no_longer_printed_once_it_was_changed(
    start: Starting, product: Path
) -> None:
    first = start().ready()
    password = first.fact("password")
    kept = product / ".kampong" / "demo.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    change = (
        "from django.contrib.auth.models import User; user = User.objects.get(username='demo');"
        "assert user.is_staff and not user.is_superuser;"
        "print(sorted(user.get_all_permissions()), user.check_password(PASSWORD));"
        "user.set_password('another long password'); user.save()"
    ).replace("PASSWORD", repr(password))
    changed = first.paste(f'{first.found(r"^ *(.+ manage.py) approvals list")} shell -v0 -c "{change}"')
    rights = ["approvals.decide", "approvals.view_auditentry", "approvals.view_request"]
    rights += ["workflows.operate_run", "workflows.start_run", "workflows.view_run"]
    assert changed.stdout.strip() == f"{rights} True", changed.stderr
    below = first.below()
    assert first.end(signal.SIGINT) == 0  # as Ctrl-C
    assert [pid for pid in below if is_alive(pid)] == []

    second = start().ready()

    assert second.fact("password").startswith("not the one of the first start")
    assert password not in second.printed + kept.read_text()
    assert second.fact("token") == first.fact("token")


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (0, "is in use. Stop what uses it, or take another one:\n  DEMO_PORT="),
        (1, "is in use, and the examples call their service there."),
    ],
)
def test_a_port_in_use_is_named_with_the_way_out(
    start: Starting, ports: tuple[int, int], taken: int, said: str
) -> None:
    with socket.create_server(("127.0.0.1", ports[taken])):
        demo = start()
        assert demo.wait() == 1

    assert f"Port {ports[taken]} {said}" in demo.printed


def test_with_both_ports_in_use_one_line_names_two_others(start: Starting, ports: tuple[int, int]) -> None:
    with socket.create_server(("127.0.0.1", ports[0])), socket.create_server(("127.0.0.1", ports[1])):
        demo = start()
        assert demo.wait() == 1

    line = re.search(r"^  DEMO_PORT=(\d+) DEMO_SERVICE_PORT=(\d+) make demo$", demo.printed, re.MULTILINE)
    assert line
    assert len({*ports, int(line[1]), int(line[2])}) == 4


@pytest.mark.parametrize(("text", "said"), [("80a", "a port is a number"), ("70000", "from 1 to 65535")])
def test_a_port_that_is_none_is_refused(product: Path, text: str, said: str) -> None:
    with demos(product, DEMO_PORT=text) as starting:
        demo = starting()
        assert demo.wait() == 1

    assert said in demo.printed
