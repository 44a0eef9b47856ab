"""`approvals`: the queue from a terminal: what waits, what would run, yes or no."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from approvals import ballots, policy
from approvals.actors import cli_actor
from approvals.delegating import delegate
from approvals.editing import edit_request
from approvals.management import filters
from approvals.management.differing import lines_of
from approvals.narrowing import Narrowing
from approvals.queue import MOST, detail, waiting
from approvals.rebinding import rebind
from approvals.recall import withdraw
from approvals.services import Outcome, decide
from statestore.clock import now
from workflows import formwords
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.management.acting import add_as, as_words
from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE, WAITING
from workflows.management.following import rest_of, to_rest
from workflows.management.terminal import facts, one_line, plain, pretty, quoted, table, time_left, to_type
from workflows.reading import run_json

_REASON_SHOWN = 60
_VERBS = {
    "list": "everything that waits, the oldest first",
    "show": "one request: what would run, and what led to it",
    "approve": "say yes: the run goes on",
    "reject": "say no: the run ends",
    "delegate": "hand it to somebody who decides in your place",
    "withdraw": "take an approval back while it waits for its effect",
    "edit": "change what waits, for somebody to decide on",
    "rebind": "bind it to its spec as the file is now",
}
_EDITS = 'what to change, by path: {"action.body.json.amount": 5}'


class Command(AnsweringCommand):
    help = "List and show what waits for a person; approve, reject, change, hand on, take back."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(
            dest="verb", required=True, metavar="list | show | approve | reject | delegate | withdraw | edit | rebind"
        )
        listing, showing, approving, rejecting, handing, undoing, changing, binding = (
            acts.add_parser(verb, help=words, allow_abbrev=False) for verb, words in _VERBS.items()
        )
        for one in (listing, showing, approving, rejecting, handing, undoing, changing, binding):
            add_as(one)
            one.add_argument("--json", action="store_true", help="exactly one JSON object on stdout")
            if one is not listing:
                one.add_argument("key", metavar="KEY", help="the request's key")
        filters.add_filters(listing)
        for one in (approving, rejecting):
            one.add_argument("--reason", default="", metavar="TEXT", help="why; kept with the decision")
            one.add_argument("--answers", type=_json, metavar="JSON", help="answers to the request's form, an object")
        for one in (handing, changing):
            one.add_argument("--reason", default="", metavar="TEXT", help="why; kept in the audit")
        for one in (undoing, binding):
            one.add_argument("--reason", required=True, metavar="TEXT", help="why; kept in the audit")
        approving.add_argument(
            "--break-glass", action="store_true", help="approve in spite of four eyes, or alone; wants --reason"
        )
        approving.add_argument("--edits", type=_json, metavar="JSON", help=_EDITS)
        changing.add_argument("--edits", type=_json, required=True, metavar="JSON", help=_EDITS)
        handing.add_argument("--to", required=True, metavar="USER", help="the user's name")

    def perform(self, **options: Any) -> int:
        actor = cli_actor(options["as_user"])
        if options["verb"] == "list":
            return self._list(actor, options)
        if options["verb"] == "show":
            return self._show(actor, options)
        if options["verb"] == "delegate":
            return self._hand_on(actor, options)
        if options["verb"] == "withdraw":
            return self._withdraw(actor, options)
        if options["verb"] in ("edit", "rebind"):
            return self._change(actor, options)
        return self._decide(actor, options)

    def _list(self, actor: Actor, options: dict[str, Any]) -> int:
        policy.need(policy.Verdict(allowed=policy.may_view(actor), rule=f"the permission {policy.VIEW} is needed"))
        by = filters.asked(options, actor)
        items = _all_waiting(by)
        if options["json"]:
            self.answer({"success": True, "approvals": items, "next": None})
        elif items:
            self.show_lines(table(("KEY", "AGENT", "STEP", "KIND", "LEFT", "REASON"), map(_row, items)))
        else:
            self.show("Nothing waits for a person." if by == Narrowing() else "Nothing that waits fits.")
        return DONE

    def _show(self, actor: Actor, options: dict[str, Any]) -> int:
        shown = detail(options["key"], actor)
        if options["json"]:
            self.answer({"success": True, **shown})
        else:
            self.show_lines(_described(shown, as_words(options["as_user"])))
        return DONE

    def _decide(self, actor: Actor, options: dict[str, Any]) -> int:
        approved, as_json = options["verb"] == "approve", options["json"]
        given = {"reason": options["reason"] or None, "answers": options["answers"], "actor": actor}
        given["edits"] = options.get("edits")
        outcome = decide(options["key"], approved=approved, break_glass=options.get("break_glass", False), **given)
        if outcome.votes is not None:
            return self._voted(outcome, as_json)
        if not as_json:
            self.show(f"{'Approved' if approved else 'Rejected'} by {one_line(actor.label)}.")
        run = to_rest(outcome.run, here=False)
        if as_json:
            self.answer({"success": True, **run_json(run)})
        if not approved:
            if not as_json:
                self.show(f"Run {run.uuid} {run.status}.")
            return DONE
        rest = rest_of(run, options["as_user"])
        if not as_json:
            self.show_lines(rest.lines)
            if rest.complaint:
                self.say(rest.complaint)
        return rest.code

    def _hand_on(self, actor: Actor, options: dict[str, Any]) -> int:
        handed = delegate(options["key"], to=options["to"], actor=actor, reason=options["reason"])
        if options["json"]:
            self.answer({"success": True, **run_json(handed.run)})
        else:
            self.show(f"{one_line(options['to'])} may decide it now as well, in the place of {one_line(actor.label)}.")
        return DONE

    def _withdraw(self, actor: Actor, options: dict[str, Any]) -> int:
        reopened = withdraw(options["key"], actor=actor, reason=options["reason"])
        if options["json"]:
            self.answer({"success": True, **run_json(reopened.run)})
            return WAITING
        self.show(f"Withdrawn by {one_line(actor.label)}: nothing had been done on this approval.")
        self.show_lines(rest_of(reopened.run, options["as_user"]).lines)
        return WAITING

    def _change(self, actor: Actor, options: dict[str, Any]) -> int:
        key, by = options["key"], one_line(actor.label)
        if options["verb"] == "edit":
            done = edit_request(key, edits=options["edits"], actor=actor, reason=options["reason"])
            told = f"Changed by {by}: approvals given so far are void. It still waits: {done.key}"
        else:
            done = rebind(key, actor=actor, reason=options["reason"])
            told = f"Bound to the spec as it is now by {by}: approvals and edits so far are void. It still waits: {key}"
        if options["json"]:
            self.answer({"success": True, **run_json(done.run)})
        else:
            self.show(told)
        return DONE

    def _voted(self, outcome: Outcome, as_json: bool) -> int:
        votes = outcome.votes or {}
        if as_json:
            self.answer({"success": True, **run_json(outcome.run), "votes": votes})
        else:
            self.show(f"Your approval counts: {votes['given']} of {votes['needed']}. Others must approve as well.")
        return WAITING


def _all_waiting(by: Narrowing) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = waiting(by=by, after=after, limit=MOST)
        items += page.items
        if page.next is None:
            return items
        after = page.next


def _json(text: str) -> Json:
    try:
        return jsontext.loads(text)
    except ValueError as problem:
        raise ArgumentTypeError(f"not JSON: {problem}") from problem


def _left(item: dict[str, Any]) -> str:
    return time_left(datetime.fromisoformat(item["expiresAt"]), now())


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    kind = f"{item['kind']} {item['toolName']}" if "toolName" in item else item["kind"]
    return (item["key"], item["agent"], item["step"], kind, _left(item), one_line(item["reason"], _REASON_SHOWN))


def _described(shown: dict[str, Any], who: str) -> list[str]:
    may = shown["may"]
    lines = [
        f'Step "{one_line(shown["step"])}" of {one_line(shown["agent"])} waits for approval.',
        quoted(shown["message"]),
        *facts(
            [
                ("key", shown["key"]),
                ("run", shown["runId"]),
                ("kind", f"{shown['kind']} {shown.get('toolName', '')}".strip()),
                ("since", shown["createdAt"]),
                ("left", f"{_left(shown)} (until {shown['expiresAt']})"),
                ("digest", shown["digest"]),
                ("you", f"{'may decide' if may['decide'] else 'may not decide'}: {may['rule']}"),
            ]
        ),
    ]
    lines += _before(shown)
    if shown["action"] is not None:
        lines += ["What will run:" if shown["kind"] == "tool" else "Its output:", quoted(pretty(shown["action"]))]
    if advice := shown.get("advice", {}).get("reason"):
        lines += ["What its rules said:", quoted(advice)]
    if shown["outputs"]:
        lines += ["Earlier outputs:", quoted(pretty(shown["outputs"]))]
    lines += lines_of(shown, who)
    form = shown.get("form")
    answers = ballots.answered(shown["votes"])
    if shown["votes"]:
        lines.append(f"Approved so far by {', '.join(one_line(vote['by']) for vote in shown['votes'])}.")
    if answers is not None:
        lines += ["They answered; other answers void their approvals:", quoted(pretty(answers))]
    if form is not None:
        lines += ["Its form, to be answered with --answers:", quoted("\n".join(formwords.lines(form)))]
    lines.append(f"Who decides: {one_line(shown['policyText'])}.")
    if "doubt" in shown:
        lines.append(f"Nobody can satisfy this: {one_line(shown['doubt'])}.")
    line = to_type(f"approvals approve {shown['key']}{who}")
    if form is not None and (answers is not None or form.get("required")):
        filled = formwords.example(form) if answers is None else answers
        line += f" --answers {shlex.quote(plain(jsontext.dumps(filled)))}"
    lines.append(f"Decide: {line}   (or reject, with --reason)")
    return lines


def _before(shown: dict[str, Any]) -> list[str]:
    """Why this is asked again, and what was shown then; nothing where it is asked first."""
    previous = shown.get("reopenedFrom")
    if previous is None:
        return []
    rebound = previous.get("rebound")
    again = (
        f"Bound to a changed spec by {one_line(rebound['by'])}" if rebound else f"Asked again, after {previous['key']}"
    )
    return [f"{again}: {one_line(previous['what_differs'])}. Shown then:", quoted(pretty(previous["action"]))]
