"""A task of somebody else's."""

from __future__ import annotations

try:
    from django.tasks import task  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from django_tasks import task  # type: ignore[no-redef, assignment, unused-ignore]


@task()
def sweep() -> None:
    """Not ours."""
