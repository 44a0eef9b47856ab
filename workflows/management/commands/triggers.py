"""`triggers`: what starts runs while nobody looks, from a terminal; set a cursor, a lock or a wait back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser

from statestore.keys import CURSOR
from statestore.store import StateStore
from workflows.actors import Actor
from workflows.desk import Reset
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import AgentNotFound
from workflows.management.acting import OPERATE, VIEW, add_as, allowed
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, UsageError
from workflows.management.terminal import facts, one_line, table
from workflows.models import WORKSPACE
from workflows.times import rfc3339
from workflows.triggers.handover import POSITION
from workflows.triggers.resets import free_lock, reset_cursor, try_now
from workflows.triggers.standing import Called, Standing, rows_with_last_run, standings, webhooks, without_row

_ACTS = {
    "reset-cursor": "let the next poll begin from the start; needs --reason",
    "free-lock": "let the next due time start a run although one is going; needs --reason",
    "try-now": "try one at once that was put off after failures",
}
_DOORS: dict[str, Callable[..., Reset]] = {"reset-cursor": reset_cursor, "free-lock": free_lock, "try-now": try_now}
_DONE = {
    "reset-cursor": "The cursor of {agent} was reset: its poll is due now and begins from the start. What was seen "
    "stays seen.",
    "free-lock": "The lock of {agent} was freed. Run {run} had it, and goes on.",
    "try-now": "{agent} is put off no longer: a scheduler that has its file tries it within seconds. `triggers show` "
    "tells how it went.",
}
_NEED_REASON = ("reset-cursor", "free-lock")
_VALUE_SHOWN = 160


class Command(AnsweringCommand):
    help = "List and show schedules, polls and webhooks; reset a cursor, free a lock, try one now."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(
            dest="verb", required=True, metavar="list | show | reset-cursor | free-lock | try-now"
        )
        common: dict[str, Any] = {"allow_abbrev": False}
        listing = acts.add_parser("list", help="every trigger: when it is due, what it did last", **common)
        showing = acts.add_parser("show", help="one trigger", **common)
        acting = [acts.add_parser(name, help=text, **common) for name, text in _ACTS.items()]
        for one in (listing, showing, *acting):
            add_as(one)
            one.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
        for one in (showing, *acting):
            one.add_argument("agent", metavar="AGENT", help="the agent's id")
        for one in acting:
            one.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the audit")

    def perform(self, **options: Any) -> int:
        verb: str = options["verb"]
        if verb in _NEED_REASON and not options["reason"].strip():
            raise UsageError(f"triggers {verb}: --reason is needed; say why, in a few words")
        actor = allowed(options["as_user"], OPERATE if verb in _ACTS else VIEW)
        match verb:
            case "list":
                return self._list(options["json"])
            case "show":
                return self._show(options["agent"], options["json"])
        return self._act(verb, options["agent"], actor, options["reason"], options["json"])

    def _list(self, as_json: bool) -> int:
        found, called = _standings(), webhooks()
        if as_json:
            rows = [_row(one) for one in found] + [_called(one) for one in called]
            self.answer({"success": True, "triggers": rows, "next": None})
            return DONE
        lines = [(one.agent_id, one.kind, _next(one), _last(one), one.when or "-") for one in found]
        lines += [(one.agent_id, "webhook", "-", _newest(one), one.when) for one in called]
        if lines:
            self.show_lines(table(("AGENT", "KIND", "NEXT", "LAST", "WHEN"), lines))
        else:
            self.show("There are no triggers: no spec of version 1.2 that is served has one.")
        return DONE

    def _show(self, agent_id: str, as_json: bool) -> int:
        one = next((one for one in _standings() if one.agent_id == agent_id), None)
        called = next((one for one in webhooks() if one.agent_id == agent_id), None)
        if one is None and called is None:
            raise AgentNotFound(f"agent {agent_id!r} has no trigger here; `triggers list` names those that have one")
        answer = _row(one) | _cursor(one) if one is not None else _called(called) if called is not None else {}
        if as_json:
            self.answer({"success": True, **answer})
        elif one is not None:
            self.show_lines([f"Trigger of {one_line(agent_id)}", *facts(_described(one))])
        elif called is not None:
            rows = [("kind", "webhook"), ("when", called.when), ("newest run", _newest(called))]
            self.show_lines([f"Trigger of {one_line(agent_id)}", *facts(rows)])
        return DONE

    def _act(self, verb: str, agent_id: str, actor: Actor, reason: str, as_json: bool) -> int:
        what = _DOORS[verb](agent_id, actor=actor, reason=reason)
        if as_json:
            run: dict[str, Json] = {"run": what.run} if what.run else {}
            self.answer({"success": True, "agent": agent_id, "reset": what.what, **run})
        else:
            self.show(one_line(_DONE[verb].format(agent=agent_id, run=what.run)))
        return DONE


def _standings() -> list[Standing]:
    return standings(rows_with_last_run().order_by("agent_id")) + without_row()


def _row(one: Standing) -> dict[str, Json]:
    """One trigger under wire names; what is not known is left out."""
    told: dict[str, Json] = {"agent": one.agent_id, "kind": one.kind}
    if one.when:
        told["when"] = one.when
    if one.next_at is not None:
        told["nextAt"] = rfc3339(one.next_at)
    row = one.row
    if row is not None:
        told |= {"started": row.started, "skipped": row.skipped, "failures": row.failures}
        times = {"lastDueAt": row.last_due_at, "firedAt": row.fired_at, "retryAt": row.retry_at}
        told |= {name: rfc3339(moment) for name, moment in times.items() if moment is not None}
        if row.last_run is not None:
            told["lastRun"] = str(row.last_run.uuid)
        if row.error:
            told["error"] = row.error
    if one.holder:
        told["heldBy"] = one.holder
    if one.problem:
        told["problem"] = one.problem
    return told


def _cursor(one: Standing) -> dict[str, Json]:
    if one.kind != "poll":
        return {}
    found = StateStore(WORKSPACE, one.agent_id, kinds=(CURSOR,)).versioned(POSITION)
    return {"cursor": found.value} if found is not None else {}


def _called(one: Called) -> dict[str, Json]:
    told: dict[str, Json] = {"agent": one.agent_id, "kind": "webhook", "when": one.when}
    return told | ({"newestRun": str(one.last_run.uuid)} if one.last_run is not None else {})


def _next(one: Standing) -> str:
    if one.next_at is None:
        return "-"
    if one.late:
        return "overdue: is a scheduler running?"
    return "due" if one.overdue else rfc3339(one.next_at)


def _last(one: Standing) -> str:
    return rfc3339(one.row.fired_at) if one.row is not None and one.row.fired_at is not None else "-"


def _newest(one: Called) -> str:
    return rfc3339(one.last_run.created_at) if one.last_run is not None else "-"


def _described(one: Standing) -> list[tuple[str, str]]:
    rows = [("kind", one.kind), ("when", one.when or "not known here"), ("next", _next(one))]
    if one.next_local:
        rows.append(("", one.next_local))
    row = one.row
    if row is not None:
        rows += [("last", _last(one)), ("started", str(row.started)), ("skipped", str(row.skipped))]
        if row.last_run is not None:
            rows.append(("last run", str(row.last_run.uuid)))
        if row.failures:
            rows.append(("failed", f"{row.failures} in a row: {row.error}"))
        if row.retry_at is not None:
            rows.append(("next try", rfc3339(row.retry_at)))
    if one.holder:
        until = f", until {rfc3339(one.locked_until)}" if one.locked_until is not None else ""
        rows.append(("lock", f"held by run {one.holder}{until}"))
    if (cursor := _cursor(one)) != {}:
        rows.append(("cursor", one_line(jsontext.dumps(cursor["cursor"]), _VALUE_SHOWN)))
    if one.problem:
        rows.append(("problem", one.problem))
    return rows
