from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """Specs, runs and the driver (floors 1 and 2)."""

    name = "workflows"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Workflows"

    def ready(self) -> None:
        # Models must be loaded first.
        from statestore import upkeep
        from workflows import beats, housekeeping, pacing, specwatch
        from workflows.repair import checks, contributed
        from workflows.retention import pruning

        housekeeping.register("purge of expired entries", 60.0, upkeep.purge_expired, batch=upkeep.BATCH)
        housekeeping.register("finished runs", 60.0, pruning.prune, batch=pruning.BATCH)
        housekeeping.register("old decisions", 60.0, pruning.prune_decisions, batch=pruning.BATCH)
        housekeeping.register("forgotten workers", 3600.0, beats.prune)
        housekeeping.register("old slots of paced calls", 3600.0, pacing.prune)
        housekeeping.register("spec files", specwatch.EVERY_SECONDS, specwatch.watch.look, only_tells=True)
        contributed.register(*checks.CHECKS)
