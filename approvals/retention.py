"""What was asked on runs, for the end of what is kept no longer (workflows/retention)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from approvals.models import ApprovalRequest, RequestStatus
from workflows.retention.families import Asked


class AskedOnRuns:
    """The requests on runs. Nothing here touches the audit."""

    def asked(self, runs: Collection[int]) -> Iterator[Asked]:
        """Every request on these runs, open ones without an end."""
        found = ApprovalRequest.objects.filter(run__in=runs).values_list("run_id", "status", "closed_at")
        for run, status, closed_at in found:
            yield Asked(run=run, closed_at=None if status == RequestStatus.OPEN else closed_at)

    def remove(self, runs: Collection[int]) -> None:
        """Delete them, with their votes, edits, looks, delegations, audience and notices."""
        ApprovalRequest.objects.filter(run__in=runs).delete()
