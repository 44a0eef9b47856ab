"""Proof of who did what: append-only entries, sealed into one chain a workspace after they are committed (design 4).

A chain head locked inside each decision would cost most of its speed; the sealer links committed entries later, one
holder at a time, in the order in which it sees them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F

from approvals.models import ApprovalRequest, AuditEntry, AuditSeal
from statestore.clock import now
from workflows.actors import Actor
from workflows.engine import jsontext
from workflows.models import WORKSPACE
from workflows.times import rfc3339

CONTENT = (
    "workspace",
    "act",
    "outcome",
    "key",
    "run",
    "successor",
    "agent_id",
    "step",
    "actor",
    "actor_user_id",
    "actor_detail",
    "surface",
    "reason",
    "digest",
    "digest_sent",
    "spec_hash",
    "answers",
    "policy",
)
OUTCOME_ACTS = ("decide", "expire", "cancel", "withdraw")
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `verify` found. `first_bad` names the first entry that does not fit and why; None when all is well.

    `head` is the hash of the last seal.
    """

    workspace: str
    sealed: int
    unsealed: int
    head: str = ""
    first_bad: str | None = None


def own_hash(entry: AuditEntry) -> str:
    """SHA-256 over the entry's content in canonical JSON; `details` counts where there are any."""
    content: dict[str, Any] = {name: getattr(entry, name) for name in CONTENT}
    if entry.details:
        content["details"] = entry.details
    content["at"] = entry.at.isoformat(timespec="microseconds")
    return hashlib.sha256(jsontext.canonical(content).encode()).hexdigest()


def sealed_hash(number: int, previous: str, own: str) -> str:
    """The link: the entry's number, the link before it and the entry's own hash."""
    return hashlib.sha256(f"{number}:{previous}:{own}".encode()).hexdigest()


def record(act: str, *, actor: Actor, run: str, agent_id: str, spec_hash: str, **facts: Any) -> AuditEntry:
    """Append one entry, inside the transaction of the act."""
    entry = AuditEntry(
        act=act,
        actor=actor.label,
        actor_user_id=actor.user_id,
        actor_detail=actor.detail,
        surface=actor.surface,
        run=run,
        agent_id=agent_id,
        spec_hash=spec_hash,
        at=now(),
        **facts,
    )
    entry.own_hash = own_hash(entry)
    entry.save(force_insert=True)
    return entry


def of_request(act: str, request: ApprovalRequest, *, actor: Actor, **facts: Any) -> AuditEntry:
    """The entry of an act on a request; `facts` are what else belongs to it, or what is not as the request has it."""
    about: dict[str, Any] = {
        "workspace": request.workspace,
        "key": str(request.key),
        "run": str(request.run.uuid),
        "agent_id": request.agent_id,
        "step": request.step,
        "digest": request.digest,
        "spec_hash": request.spec_hash,
    }
    return record(act, actor=actor, **about | facts)


_DONE = {"retry": "retried", "give_up": "given up", "cancel": "cancelled", "repair": "repaired"}
_SET_BACK = {
    "cursor": "cursor reset",
    "lock": "lock freed",
    "incident": "incident closed",
    "seen": "seen item forgotten",
    "wait": "wait ended",
}


def done_in_words(entry: AuditEntry) -> str:
    """`approved`, `retried`, `lock freed`: what became of it, as the beginning of a sentence about who did it."""
    if entry.act == "reset":
        what = jsontext.loads(entry.details).get("what", "") if entry.details else ""
        return _SET_BACK.get(what, "reset")
    return entry.outcome or _DONE.get(entry.act, entry.act)


def decision_of(key: str, workspace: str = WORKSPACE) -> dict[str, Any] | None:
    """`{outcome, by, at, surface}` of a key, None when nothing is known.

    The outcome is approved, rejected, expired, cancelled or withdrawn.
    """
    entry = AuditEntry.objects.filter(workspace=workspace, key=key, act__in=OUTCOME_ACTS).order_by("id").last()
    if entry is None:
        return None
    return {"outcome": entry.outcome, "by": entry.actor, "at": rfc3339(entry.at), "surface": entry.surface}


def seal(limit: int = BATCH) -> int:
    """Link committed entries that are in no chain yet; how many. Safe to run in several processes at once."""
    sealed = 0
    open_entries = AuditEntry.objects.filter(seal_no__isnull=True)
    for workspace in open_entries.order_by("workspace").values_list("workspace", flat=True).distinct():
        AuditSeal.objects.bulk_create([AuditSeal(workspace=workspace)], ignore_conflicts=True)
        with transaction.atomic():
            # The update takes the row's lock: the next holder reads the head that this one leaves.
            AuditSeal.objects.filter(workspace=workspace).update(last_no=F("last_no"))
            head = AuditSeal.objects.get(workspace=workspace)
            for entry in open_entries.filter(workspace=workspace).order_by("id")[:limit]:
                number = head.last_no + 1
                link = sealed_hash(number, head.last_hash, entry.own_hash)
                linked = AuditEntry.objects.filter(pk=entry.pk, seal_no__isnull=True).update(
                    seal_no=number, previous=head.last_hash, sealed_hash=link
                )
                if linked == 1:
                    head.last_no, head.last_hash = number, link
                    sealed += 1
            AuditSeal.objects.filter(pk=head.pk).update(last_no=head.last_no, last_hash=head.last_hash)
    return sealed


def verify(workspace: str = WORKSPACE) -> Report:
    """Recompute every hash and every link of one chain, also while a sealer adds to it."""
    sealed_no, sealed_last = _head(workspace)
    number, previous, bad = 0, "", None
    chain = AuditEntry.objects.filter(workspace=workspace, seal_no__isnull=False).order_by("seal_no")
    for entry in chain.iterator():
        number += 1
        bad = _fault(entry, number, previous)
        if bad is not None:
            break
        previous = entry.sealed_hash
        if number == sealed_no and previous != sealed_last:
            bad = f"entry {number}: it is not the one that was sealed under this number"
            break
    if bad is None and number < sealed_no:
        bad = f"the chain ends at entry {number}, but {sealed_no} were sealed: entries are missing at its end"
    # Asked again: a sealer may have gone on since. Its entries and its mark are committed together.
    if bad is None and number > (marked := _head(workspace)[0]):
        bad = (
            f"the chain ends at entry {number}, but only {marked} were sealed: entries were added, or the mark is gone"
        )
    unsealed = AuditEntry.objects.filter(workspace=workspace, seal_no__isnull=True)
    if bad is None:
        wrong = next((entry for entry in unsealed.order_by("id").iterator() if own_hash(entry) != entry.own_hash), None)
        if wrong is not None:
            bad = f"unsealed entry with id {wrong.pk}: its content does not match its hash"
    return Report(workspace=workspace, sealed=number, unsealed=unsealed.count(), head=previous, first_bad=bad)


def _head(workspace: str) -> tuple[int, str]:
    """Number and hash of the entry that was sealed last; nothing sealed: 0."""
    found = AuditSeal.objects.filter(workspace=workspace).values_list("last_no", "last_hash").first()
    return found or (0, "")


def _fault(entry: AuditEntry, number: int, previous: str) -> str | None:
    if entry.seal_no != number:
        return f"entry {number} is missing (the next one there is {entry.seal_no})"
    if own_hash(entry) != entry.own_hash:
        return f"entry {number}: its content does not match its hash"
    if entry.previous != previous or entry.sealed_hash != sealed_hash(number, previous, entry.own_hash):
        return f"entry {number}: its link does not match the entry before it"
    return None
