from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """Who may decide, the decision, its proof (floor 3)."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Approvals"
