from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """Specs, runs and the driver (floors 1 and 2)."""

    name = "workflows"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Workflows"

    def ready(self) -> None:
        # Models must be loaded first.
        from statestore.upkeep import purge_expired
        from workflows import beats, housekeeping, pacing

        housekeeping.register("purge of expired entries", 60.0, purge_expired)
        housekeeping.register("forgotten workers", 3600.0, beats.prune)
        housekeeping.register("old slots of paced calls", 3600.0, pacing.prune)
