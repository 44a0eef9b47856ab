from django.apps import AppConfig


class KampongConfig(AppConfig):
    """The project: wiring and the checks of a deployment (floor 5)."""

    name = "kampong"

    def ready(self) -> None:
        from kampong import checks  # noqa: F401  (registers the checks; apps must be ready first)
