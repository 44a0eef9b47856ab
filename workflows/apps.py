from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """Specs, runs and the driver (floors 1 and 2)."""

    name = "workflows"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Workflows"
