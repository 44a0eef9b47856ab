"""One person who may do everything, on every surface, and what that person is shown."""

from __future__ import annotations

import re
import threading
from typing import Final

import httpx2
from django.contrib.auth.models import User

from approvals.models import ApprovalRequest
from approvals.tokens import create_token
from statestore.jsontext import dumps
from tests.canary.planted import PAYMENTS, SECRETS, WEBHOOK_HEADERS
from tests.canary.searching import Seen
from tests.commanding import Terminal
from tests.fakes_slack import FakeSlack
from tests.served import Served, until
from tests.signing import standard
from workflows.models import FINAL, Run, Status
from workflows.runs import find_run, newest

NOTE: Final = "a note that everybody may see"
_CSRF = re.compile(r'name="(csrfmiddlewaretoken|digest)" value="([^"]*)"')


class Journey:
    """One person who may do everything, on every surface; all that is shown is kept."""

    def __init__(self, served: Served, user: User, terminal: Terminal, slack: FakeSlack, seen: Seen) -> None:
        self.served, self.user, self.slack, self.seen, self.terminal = served, user, slack, seen, terminal
        self.token = create_token(user, "canary")
        headers = {"Authorization": f"Bearer {self.token}"}
        hooks = {"response": [seen.keep_answer]}
        self.rest = httpx2.Client(base_url=served.url, headers=headers, timeout=60, event_hooks=hooks)
        self.browser = served.as_session(user)
        self.browser.event_hooks = hooks
        self._streams: list[threading.Thread] = []

    def end(self) -> None:
        for stream in self._streams:
            stream.join(60)
        self.rest.close()
        self.browser.close()

    def start(self) -> Run:
        """By a webhook with credentials in its headers, after deliveries whose signatures do not fit."""
        body = dumps({"invoice": 7, "note": NOTE}).encode()
        sent = WEBHOOK_HEADERS | {"Content-Type": "application/json"}
        good = standard(body, secret=SECRETS["HOOK_SECRET"])
        for wrong in ({}, standard(body, secret="x"), standard(body, secret=SECRETS["HOOK_SECRET"], away=900)):
            assert self.rest.post("/webhook/clerk", content=body, headers=sent | wrong).status_code == 401
        answer = self.rest.post("/webhook/clerk", content=body, headers=sent | good)
        assert answer.status_code == 201, answer.text
        return find_run(answer.json()["id"])

    def follow(self, run: Run) -> None:
        """Keep what the run's event stream says until it ends."""

        def read() -> None:
            with self.rest.stream("GET", f"/runs/{run.uuid}/events") as stream:
                self.seen.keep("events", "\n".join(stream.iter_lines()))

        self._streams.append(threading.Thread(target=read))
        self._streams[-1].start()

    def failed(self, run: Run) -> Run:
        """Wait for its failure, and look at it everywhere."""
        until(lambda: newest(run).status in FINAL)
        present = newest(run)
        assert present.status == Status.FAILED, (present.status, present.error)
        self.look(present)
        return present

    def look(self, run: Run) -> None:
        self.follow(run)
        for path in (f"/runs/{run.uuid}", f"/runs/{run.uuid}?own=1", "/runs", "/approvals", "/readyz"):
            self.rest.get(path)
        self.browser.get(f"/admin/workflows/run/{run.pk}/change/")
        self.command("runs", "show", str(run.uuid), "--as", self.user.username)

    def waits(self, run: Run) -> ApprovalRequest:
        """Wait for its pause, and look at it everywhere."""
        until(lambda: ApprovalRequest.objects.filter(run=newest(run)).exists())
        request = ApprovalRequest.objects.get(run=newest(run))
        self.look(newest(run))
        shown = self.rest.get(f"/approvals/{request.key}")
        assert "${PAY_TOKEN}" in shown.text, "the reference, not its value"
        assert NOTE in shown.text
        for words in (("list",), ("list", "--json"), ("show", str(request.key)), ("show", str(request.key), "--json")):
            self.command("approvals", *words, "--as", self.user.username)
        return request

    def command(self, *words: str, code: int = 0) -> None:
        said = self.terminal.run(*words)
        self.seen.keep(f"command {words[0]} {words[1]}", f"{said.out}\n{said.err}")
        assert said.code == code, said

    def post(self, path: str, **fields: str) -> None:
        """An admin form, as a browser fills it in."""
        page = self.browser.get(path)
        answer = self.browser.post(path, data=dict(_CSRF.findall(page.text)) | fields)
        assert answer.status_code == 302, answer.text

    def retry(self, run: Run, how: int) -> None:
        """By REST, in the admin, at a terminal, in turn."""
        reason = "the other side says it was not paid"
        if how % 3 == 0:
            answer = self.rest.post(f"/runs/{run.uuid}/retry", json={"reason": reason})
            assert answer.status_code == 200, answer.text
        elif how % 3 == 1:
            self.post(f"/admin/workflows/run/{run.pk}/act/retry/", reason=reason)
        else:
            words = ("runs", "retry", str(run.uuid), "--reason", reason, "--as", self.user.username)
            self.command(*words, code=2 if how < len(PAYMENTS) - 2 else 0)
