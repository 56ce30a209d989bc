from django.apps import AppConfig

from inspector.conf import inspector_configuration


class InspectorConfig(AppConfig):
    name = "inspector"
    verbose_name = "Memory inspector"

    def ready(self) -> None:
        import inspector.checks  # noqa: F401  (registers them)

        inspector_configuration()  # a mistake in the settings stops the start
