"""The checks of this app, in the order in which mending goes."""

from __future__ import annotations

from approvals.repair import entries, proof, requests, waiting

CHECKS = (*waiting.CHECKS, *requests.CHECKS, *entries.CHECKS, *proof.CHECKS)
