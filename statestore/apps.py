from __future__ import annotations

from django.apps import AppConfig

from statestore import checks


class StateStoreConfig(AppConfig):
    """The keyed store (floor 0)."""

    name = "statestore"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "State store"

    def ready(self) -> None:
        checks.register_all()
