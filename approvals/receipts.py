"""The receipt of one request: what was done with it, and the links by which anybody can check that offline.

A receipt holds all entries of a key and the chain from the first of them to its end as it was then. Whoever has noted
that end (`audit verify` prints it) knows that the entries are the ones that were sealed.
"""

from __future__ import annotations

import hashlib
from typing import Any

from approvals import audit
from approvals.errors import ApprovalNotFound
from approvals.models import AuditEntry
from approvals.queue import is_key
from workflows.engine import jsontext
from workflows.engine.values import Json
from workflows.errors import NotPossible
from workflows.models import WORKSPACE
from workflows.times import rfc3339

FORMAT = 1


def line_of(entry: AuditEntry) -> dict[str, Json]:
    """Everything that the hashes are over, and the hashes; `at_exact` is the time as it is hashed."""
    content: dict[str, Json] = {"id": entry.pk, "at": rfc3339(entry.at)}
    content |= {name: getattr(entry, name) for name in (*audit.CONTENT, "details")}
    return content | {
        "at_exact": entry.at.isoformat(timespec="microseconds"),
        "own_hash": entry.own_hash,
        "seal_no": entry.seal_no,
        "previous": entry.previous,
        "sealed_hash": entry.sealed_hash,
    }


def receipt(key: str, workspace: str = WORKSPACE) -> dict[str, Json]:
    """`{format, key, workspace, entries, start, links, head}` of one request.

    `links` are the own hashes of the entries from number `start.no` on, `start.previous` is the link before it, `head`
    the chain's end. Raises ApprovalNotFound for a key of which the audit knows nothing, and NotPossible while its
    entries are not sealed yet.
    """
    entries = (
        list(AuditEntry.objects.filter(workspace=workspace, key=key.lower()).order_by("id")) if is_key(key) else []
    )
    if not entries:
        raise ApprovalNotFound(key)
    if any(entry.seal_no is None for entry in entries):
        raise NotPossible(
            "its entries are not sealed yet; run `sweep`, or try again in a few seconds", status="unsealed"
        )
    first = min(entries, key=lambda entry: entry.seal_no or 0)
    chain = AuditEntry.objects.filter(workspace=workspace, seal_no__gte=first.seal_no).order_by("seal_no")
    links, head = [], ""
    for own, sealed in chain.values_list("own_hash", "sealed_hash").iterator():
        links.append(own)
        head = sealed
    number = first.seal_no or 0
    return {
        "format": FORMAT,
        "key": key.lower(),
        "workspace": workspace,
        "entries": [line_of(entry) for entry in entries],
        "start": {"no": number, "previous": first.previous},
        "links": links,
        "head": {"no": number + len(links) - 1, "hash": head},
    }


def fault(found: Any, head: tuple[int, str] | None = None) -> str | None:
    """What does not hold in a receipt, without any database; None when all of it does.

    `head` is number and hash of a seal that was noted elsewhere: the receipt's chain has to pass through it.
    """
    try:
        return _fault(found, head)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return f"this is no receipt of ours ({type(error).__name__}: {error})"


def _fault(found: Any, head: tuple[int, str] | None) -> str | None:
    if found["format"] != FORMAT:
        return f"its format is {found['format']}; this version reads {FORMAT}"
    start = int(found["start"]["no"])
    seals: dict[int, str] = {}
    link = str(found["start"]["previous"])
    for number, own in enumerate(found["links"], start=start):
        link = seals[number] = audit.sealed_hash(number, link, str(own))
    for entry in found["entries"]:
        number = entry["seal_no"]
        if entry["key"] != found["key"] or entry["workspace"] != found["workspace"]:
            return f"entry {number} is not of this key"
        if _own_hash(entry) != entry["own_hash"]:
            return f"entry {number}: its content does not match its hash"
        if number not in seals or found["links"][number - start] != entry["own_hash"]:
            return f"entry {number}: it is not the one in the chain"
    end = start + len(seals) - 1
    if not seals or not found["entries"] or found["head"] != {"no": end, "hash": seals.get(end)}:
        return "its links do not lead to the head that it names"
    if head is not None and seals.get(head[0]) != head[1]:
        return f"its chain does not pass through the seal {head[0]} that was noted"
    return None


def _own_hash(entry: dict[str, Any]) -> str:
    content = {name: entry[name] for name in audit.CONTENT}
    if entry["details"]:
        content["details"] = entry["details"]
    content["at"] = entry["at_exact"]
    return hashlib.sha256(jsontext.canonical(content).encode()).hexdigest()
