"""How `approvals show` tells what differs from what was asked first: edits that stand, a spec that changed."""

from __future__ import annotations

import shlex
from typing import Any

from workflows.engine import jsontext
from workflows.management.terminal import one_line, plain, pretty, quoted, to_type

_WHERE = {
    "before": "before this step",
    "on": "on this step",
    "after": "after this step",
    "several": "on several sides of this step",
    "elsewhere": "in no step",
}
_STATES = {"changed": "changed", "added": "is new", "removed": "is gone", "moved": "stands elsewhere"}


def lines_of(shown: dict[str, Any], who: str) -> list[str]:
    """For one request as `queue.detail` tells it; nothing where it can neither be changed nor did its spec."""
    return [*_edits(shown), *_editable(shown, who), *_drift(shown, who)]


def _edits(shown: dict[str, Any]) -> list[str]:
    edits = shown.get("edits")
    if edits is None:
        return []
    by = ", ".join(dict.fromkeys(one_line(one["by"]) for one in edits["by"]))
    lines = [f"Changed{f' by {by}' if by else ''} since it was asked first:"]
    for one in edits["changes"]:
        before = pretty(one["before"]) if "before" in one else "(not known any more)"
        lines += [f"  {one_line(one['path'])}", "  before:", quoted(before), "  now:", quoted(pretty(one["after"]))]
    return lines


def _editable(shown: dict[str, Any], who: str) -> list[str]:
    offered = shown.get("editable")
    if not offered:
        return []
    first = {offered[0]["path"]: offered[0]["value"]}
    line = to_type(f"approvals edit {shown['key']}{who} --edits {shlex.quote(plain(jsontext.dumps(first)))}")
    named = ", ".join(f"{one_line(one['path'])} ({one['kind']})" for one in offered)
    return [f"May be changed before it is approved: {named}.", f"Change: {line}"]


def _drift(shown: dict[str, Any], who: str) -> list[str]:
    drift = shown.get("drift")
    if drift is None:
        return []
    lines = ["The spec changed since the run paused, so it cannot be approved now."]
    if drift["present"]:
        lines = [f"The spec changed {_WHERE[drift['place']]} since the run paused, so it cannot be approved now."]
    for one in drift["steps"]:
        lines += _side(f'step "{one_line(one["name"])}"', one)
    for one in drift["others"]:
        lines += _side(one_line(one["name"]), one)
    if drift["canRebind"]:
        lines.append(
            "Bind it to the spec as it is now: " + to_type(f"approvals rebind {shown['key']}{who} --reason WHY")
        )
    else:
        lines.append(f"{one_line(drift['whyNot'])[:1].upper()}{one_line(drift['whyNot'])[1:]}.")
    return lines


def _side(what: str, change: dict[str, Any]) -> list[str]:
    if change["state"] == "same":
        return []
    lines = [f"  {what} {_STATES[change['state']]}"]
    if change["state"] == "changed":
        lines += ["  before:", quoted(change["before"]), "  now:", quoted(change["now"])]
    return lines
