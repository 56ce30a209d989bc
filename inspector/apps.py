from django.apps import AppConfig


class InspectorConfig(AppConfig):
    name = "inspector"
    verbose_name = "Memory inspector"

    def ready(self) -> None:
        pass
