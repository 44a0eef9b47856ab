from django.apps import AppConfig


class StateStoreConfig(AppConfig):
    """The keyed store (floor 0)."""

    name = "statestore"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "State store"
