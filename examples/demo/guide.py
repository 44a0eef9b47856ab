"""What the demo prints once it runs: where to look, and lines to try that work as they stand."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from account import Account
from server import FIRST_RUN, Waiting

ORDER = {"item": "dinner set", "total": 640, "customer": "mei@example.org"}
TICKET = {"event": "evt-1", "ticket": "K-7", "from": "mei@example.org", "text": "The cup came broken"}
#: A line to try for each example, the input first, then what it shows.
TRIES = (
    ("refund.yaml", FIRST_RUN["input"], "refund: the model is sure, you are asked about the payment"),
    (
        "refund.yaml",
        '{"order": "A-1042", "reason": "I changed my mind, maybe"}',
        "refund: the model is unsure, you are asked about its judgement",
    ),
    (
        "invoice-approval.yaml",
        '{"vendor": "Lim & Daughters", "number": "2026-118", "amount": 1840.5, "currency": "SGD"}',
        "invoice: no model, a person signs for the payment",
    ),
    (
        "triage.yaml",
        "Urgent: water comes through the ceiling of flat 12!",
        "mail: asked before somebody is woken",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Guide:
    """Where everything is."""

    port: int
    service_port: int
    account: Account
    waiting: Waiting
    specs: Path
    kept: Path
    server_pid: int

    def text(self) -> str:
        """All of it."""
        parts = [self._places(), self._waits(), self._curl(), self._terminal(), self._examples()]
        parts += [self._unattended(), self._crash()]
        return "\n".join(line for part in parts for line in [*part, ""])

    def _places(self) -> Iterator[str]:
        again = f"not the one of the first start any more; set another: {_python()} manage.py changepassword demo"
        yield "Kampong runs. Ctrl-C stops all of it; the next `make demo` goes on with what is stored."
        yield ""
        yield f"  queue     http://127.0.0.1:{self.port}/admin/approvals/approvalrequest/"
        yield f"  user      {self.account.user}"
        yield f"  password  {self.account.password or again}"
        yield f"  token     {self.account.token}"
        yield f"            (for the demo alone; kept in {_shown(self.kept)}, which only you can read)"

    def _waits(self) -> Iterator[str]:
        yield f'A run of "{self.waiting.agent}" waits for you at its step "{self.waiting.step}": {self.waiting.reason}'
        yield "Open the queue, read what will run, approve with a reason. Or paste the lines below, as they stand."

    def _curl(self) -> Iterator[str]:
        key, run = self.waiting.key, self.waiting.run
        decision = {"approved": True, "reason": "The photo shows it"}
        yield "Over HTTP: what waits"
        yield self._call("/approvals")
        yield "what would run, and what led to it"
        yield self._call(f"/approvals/{key}")
        yield "watch the run (in a second terminal; it ends with the run)"
        yield self._call(f"/runs/{run}/events", "-N")
        yield "approve"
        yield self._call(f"/approvals/{key}/approve", body=json.dumps(decision))
        yield "start another run"
        yield self._call("/runs", body=json.dumps(FIRST_RUN))

    def _terminal(self) -> Iterator[str]:
        approvals = f"{_python()} manage.py approvals"
        yield f"In a terminal, from the folder {Path.cwd()}: the queue, one request, approve"
        yield f"  {approvals} list --as {self.account.user}"
        yield f"  {approvals} show {self.waiting.key} --as {self.account.user}"
        yield f"  {approvals} approve {self.waiting.key} --as {self.account.user} --reason 'The photo shows it'"

    def _examples(self) -> Iterator[str]:
        yield "The examples, asking you right there (add --detach, and the pause waits in the queue instead)"
        for name, given, shows in TRIES:
            spec = _shown(self.specs / name)
            yield shows
            yield f"  {_python()} manage.py run_spec {shlex.quote(spec)} --input {shlex.quote(given)}"

    def _unattended(self) -> Iterator[str]:
        yield "While nobody looks: orders are fetched twice a minute, and prices written to a sheet every five minutes"
        yield "what was done so far, for each order, line, ticket and incident"
        yield f"  curl -s http://127.0.0.1:{self.service_port}/counts"
        yield "a big order comes in; within half a minute its run waits in the queue"
        order = ["curl", "-s", "-d", json.dumps(ORDER), f"http://127.0.0.1:{self.service_port}/service/orders"]
        yield "  " + shlex.join(order)
        yield "a customer writes; the same line once more is the same run"
        yield self._call("/webhook/support-desk", body=json.dumps(TICKET))

    def _crash(self) -> Iterator[str]:
        yield "A crash: kill the server while something waits, start `make demo` again, approve"
        yield f"  kill -9 {self.server_pid}"
        yield "what the steps have called so far; nothing before the pause is called a second time"
        yield f"  curl -s http://127.0.0.1:{self.service_port}/"

    def _call(self, path: str, *options: str, body: str | None = None) -> str:
        words = ["curl", "-s", *options, "-H", f"Authorization: Bearer {self.account.token}"]
        if body is not None:
            words += ["-H", "Content-Type: application/json", "-d", body]
        return "  " + shlex.join([*words, f"http://127.0.0.1:{self.port}{path}"])


def _python() -> str:
    return shlex.quote(_shown(Path(sys.executable)))


def _shown(path: Path) -> str:
    """The path from here where it lies below."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
