"""The checks of this app, in the order in which mending goes: a chain before what waits, that before its calls."""

from __future__ import annotations

from workflows.repair import chains, entries, leases, queued, stories

CHECKS = (*chains.CHECKS, *leases.CHECKS, *queued.CHECKS, *stories.CHECKS, *entries.CHECKS)
