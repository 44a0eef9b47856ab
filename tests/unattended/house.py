"""A server that is killed and started again, and people and senders who go on as if it had not been."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx2
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest, RequestStatus
from approvals.tokens import create_token
from tests.conftest import Clock, People, Processes
from tests.served import Served, until
from tests.unattended.outside import Outside
from workflows.models import Attempt, Run, Status

#: A lease, and a little more: after it a run that lost its worker is taken up, or stands as interrupted.
LEASE = 61
#: Moments in the middle of a call; the service is slow then.
AT_WORK = {"working", "deciding", "polling"}
SLOW = 0.6
_GOING = (Status.QUEUED, Status.RUNNING)
_LOGGED = ("database is locked", "Traceback")


class House:
    """One server at a time on the test's database. `moments` are those at which it is killed."""

    def __init__(
        self, manage: Processes, outside: Outside, name: str, people: People, clock: Clock, moments: Sequence[str]
    ) -> None:
        self.manage, self.outside, self.people, self.clock = manage, outside, people, clock
        self.specs = outside.example(name)
        self.moments = set(moments)
        if self.moments & AT_WORK:
            outside.kill()
            outside.start(SLOW)
        self.kills = 0
        self.servers: list[Served] = []
        self._tokens: dict[int, str] = {}
        self._client = httpx2.Client(timeout=60)

    def start(self, *words: str) -> None:
        """A server, which takes up within a moment what an earlier one left."""
        env = {"KAMPONG_RECOVER_SECONDS": "0.2"}
        self.servers.append(Served(self.manage, self.outside.folder, str(self.specs), *words, **env))

    def close(self) -> None:
        """Leave nothing behind; servers are ended by whoever started them."""
        self._client.close()

    def kill(self) -> None:
        """As `kill -9`."""
        self.servers[-1].process.kill()
        self.servers[-1].process.wait(30)
        self.kills += 1

    def moment(self, name: str, away: float = 0) -> None:
        """Where the server may be killed while none of its runs is at work, and is started so many seconds later.

        Where it is not, only the time goes by.
        """
        killed = name in self.moments
        self.moments.discard(name)
        if killed:
            self.kill()
        self.clock.advance(away)
        if killed:
            self.start()

    def working(self, name: str) -> None:
        """Where it may be killed while a call is out: its service has done what it says, and nobody knows."""
        if name in self.moments:
            self.moments.discard(name)
            until(self._a_call_is_out)
            self.kill()
            self.clock.advance(LEASE)
            self.start()

    def _a_call_is_out(self) -> bool:
        """Whether more calls have come than were answered, of those that runs make and that change something."""
        came = self.outside.changes()
        return came > Attempt.objects.filter(kind="tool", safe=False).exclude(ended_at=None).count()

    def request(self, user: User, method: str, path: str, **options: Any) -> httpx2.Response:
        """One request, as soon as a server is there to answer it."""
        end = time.monotonic() + 60
        if user.pk not in self._tokens:
            self._tokens[user.pk] = create_token(user, "test")
        headers = {"Authorization": f"Bearer {self._tokens[user.pk]}"}
        while time.monotonic() < end:
            try:
                answer = self._client.request(method, self.servers[-1].url + path, headers=headers, **options)
            except httpx2.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code != 503:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"nobody answered {method} {path}")

    def deliver(self, agent: str, events: Sequence[Any], senders: int = 1) -> list[set[str]]:
        """Every event by each sender, all at once and sent again until it is taken; the ids that were told for each.

        At the moment `burst` the server is killed among them, at `working` while it works on the first ones.
        """
        told: list[set[str]] = [set() for _ in events]
        self.request(self.people.requester, "GET", "/runs?limit=1")  # the token is made before the threads need it

        def send(place: int) -> None:
            answer = self.request(self.people.requester, "POST", f"/webhook/{agent}", json=events[place])
            assert answer.status_code in (200, 201), answer.text
            told[place].add(answer.json()["id"])

        def work(offset: int) -> None:
            for number in range(len(events)):
                send((number + offset) % len(events))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(senders)]
        for thread in threads:
            thread.start()
        if "burst" in self.moments:
            self.moments.discard("burst")
            until(lambda: Run.objects.count() >= 2)
            self.kill()
            self.start()
        self.working("working")
        for thread in threads:
            thread.join(90)
        assert all(told), told
        return told

    def settle(self) -> None:
        """Until nothing is at work any more. What was interrupted an operator tries again."""
        while True:
            until(lambda: not _going(), 90)
            stands = list(Run.objects.filter(status=Status.INTERRUPTED, resumed_as=None))
            if not stands:
                return
            for run in stands:
                path = f"/runs/{run.uuid}/retry"
                answer = self.request(self.people.operator, "POST", path, json={"reason": "its server was killed"})
                assert answer.status_code == 200, answer.text

    def waiting(self) -> list[str]:
        """The keys of what waits for somebody, the oldest first."""
        return [str(one.key) for one in ApprovalRequest.objects.filter(status=RequestStatus.OPEN).order_by("id")]

    def decide(self, key: str, **said: Any) -> httpx2.Response:
        """What the approver says."""
        return self.request(self.people.approver, "POST", f"/approvals/{key}/approve?wait=0", json=said)

    def trouble(self) -> list[str]:
        """What no server may say, killed or not."""
        said = [line for served in self.servers for line in served.said().splitlines()]
        return [line for line in said if any(word in line for word in _LOGGED)]


def _going() -> bool:
    return Run.objects.filter(status__in=_GOING).exists()
