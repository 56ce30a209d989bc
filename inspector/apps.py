from django.apps import AppConfig
from django.conf import settings

from chatmemory.signals import memory_changed


class InspectorConfig(AppConfig):
    name = "inspector"
    verbose_name = "Memory inspector"

    def ready(self) -> None:
        from inspector.observability import metrics, tracing

        memory_changed.connect(metrics.memory_changed, dispatch_uid="inspector.metrics")
        if settings.OTEL:
            tracing.set_up()
