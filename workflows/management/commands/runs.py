"""`runs`: look at runs, cancel, retry and give them up, from a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.management.acting import OPERATE, VIEW, add_as, allowed
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, UsageError
from workflows.management.following import rest_of, to_rest
from workflows.management.terminal import facts, one_line, plain, pretty, table
from workflows.models import WORKSPACE, Run, Status
from workflows.reading import run_json
from workflows.runs import cancel_run, find_run, give_up_run, newest, retry_run
from workflows.times import rfc3339
from workflows.waiting import awaited

_OUTPUT_SHOWN = 160
_ACTS = {
    "cancel": "end a queued, running or waiting run",
    "retry": "go on with an interrupted or failed run at the step where it stopped; needs --reason",
    "give_up": "end an interrupted run as failed; needs --reason",
}
_NEED_REASON = ("retry", "give_up")


class Command(AnsweringCommand):
    help = "List, show, cancel, retry and give up runs."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="verb", required=True, metavar="list | show | cancel | retry | give_up")
        common: dict[str, Any] = {"allow_abbrev": False}
        listing = acts.add_parser("list", help="all runs, the oldest first", **common)
        showing = acts.add_parser("show", help="one run: where it stands and what it did", **common)
        acting = [acts.add_parser(name, help=text, **common) for name, text in _ACTS.items()]
        for one in (listing, showing, *acting):
            add_as(one)
            one.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
        for one in (showing, *acting):
            one.add_argument("id", metavar="ID", help="the run's id")
        for one in acting:
            one.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the audit")

    def perform(self, **options: Any) -> int:
        verb: str = options["verb"]
        if verb in _NEED_REASON and not options["reason"].strip():
            raise UsageError(f"runs {verb}: --reason is needed; say why, in a few words")
        actor = allowed(options["as_user"], OPERATE if verb in _ACTS else VIEW)
        if verb == "list":
            return self._list(options["json"])
        run = find_run(options["id"])
        if verb == "show":
            return self._show(run, options["json"])
        return self._act(verb, newest(run), actor, options["reason"], options["json"])

    def _list(self, as_json: bool) -> int:
        # A chain reads as its newest run.
        found = Run.objects.filter(workspace=WORKSPACE, resumed_as__isnull=True).order_by("id")
        if as_json:
            self.answer({"success": True, "runs": [_row(run) for run in found.iterator()], "next": None})
            return DONE
        rows = [
            (str(run.uuid), run.agent_id, run.status, run.step or "-", rfc3339(run.created_at))
            for run in found.iterator()
        ]
        if rows:
            self.show_lines(table(("RUN", "AGENT", "STATUS", "STEP", "CREATED"), rows))
        else:
            self.show("There are no runs.")
        return DONE

    def _show(self, run: Run, as_json: bool) -> int:
        answer = run_json(run)
        if as_json:
            self.answer({"success": True, **answer})
            return DONE
        self.show_lines(_described(run, answer))
        return DONE

    def _act(self, verb: str, run: Run, actor: Actor, reason: str, as_json: bool) -> int:
        doors: dict[str, Callable[..., Run]] = {"cancel": cancel_run, "retry": retry_run, "give_up": give_up_run}
        run = doors[verb](run, actor=actor, reason=reason)
        if verb != "retry":
            if as_json:
                self.answer({"success": True, **run_json(run)})
            else:
                self.show(plain(f"Run {run.uuid} {run.status}: {run.error}"))
            return DONE
        if not as_json:
            self.show(f"Run {run.uuid} goes on.")
        run = to_rest(run, here=False)
        rest = rest_of(run)
        if as_json:
            self.answer({"success": True, **run_json(run)})
        else:
            self.show_lines(rest.lines)
            if rest.complaint:
                self.say(rest.complaint)
        return rest.code


def _row(run: Run) -> dict[str, Json]:
    """One run of the list, under its wire names."""
    row: dict[str, Json] = {
        "id": str(run.uuid),
        "agent": run.agent_id,
        "status": "running" if run.status == Status.QUEUED else str(run.status),
        "step": run.step,
        "createdAt": rfc3339(run.created_at),
    }
    return row | ({"error": run.error} if run.error else {})


def _described(run: Run, answer: dict[str, Any]) -> list[str]:
    shown = newest(run)
    state = answer["state"]
    rows = [
        ("agent", shown.agent_id),
        ("status", shown.status),
        ("step", shown.step or "-"),
        ("started", f"{rfc3339(shown.created_at)} by {shown.started_by or 'nobody'} ({shown.surface})"),
    ]
    if wait := awaited(shown):
        rows.append(("waits", wait))
    if shown.ended_at is not None:
        rows.append(("ended", rfc3339(shown.ended_at)))
    if shown.pruned_at is not None:
        rows.append(("pruned", f"{rfc3339(shown.pruned_at)}; what it read and made was removed then"))
    rows += [(name, answer[field]) for name, field in _CHAIN if field in answer]
    rows += [("called", f"run {companion}, on a recorded decision") for companion in answer.get("companions", ())]
    if "pendingApproval" in state:
        pending = state["pendingApproval"]
        rows.append(("waits for", f"{pending['kind']} approval, key {pending.get('key', '-')}: {pending['reason']}"))
    if "error" in state:
        rows.append(("error", state["error"]))
    lines = [f"Run {run.uuid}", *facts(rows)]
    lines += [f"  {number}. {_step(record)}" for number, record in enumerate(state["trace"], start=1)]
    if "finalOutput" in state:
        lines += ["Output:", pretty(state["finalOutput"])]
    return lines


_CHAIN = (("came from", "resumedFrom"), ("goes on as", "resumedAs"), ("called for", "beside"))


def _step(record: dict[str, Any]) -> str:
    told = record.get("error") or (jsontext.dumps(record["output"]) if "output" in record else "")
    return f"{one_line(record['step'])} {record['status']} {one_line(told, _OUTPUT_SHOWN)}".rstrip()
