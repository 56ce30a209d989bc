from django.apps import AppConfig

from chatmemory.signals import incidents_found, memory_changed, problems_found
from inspector.conf import inspector_configuration


class InspectorConfig(AppConfig):
    name = "inspector"
    verbose_name = "Memory inspector"

    def ready(self) -> None:
        from inspector.observability import metrics, tracing

        memory_changed.connect(metrics.memory_changed, dispatch_uid="inspector.metrics")
        incidents_found.connect(metrics.incidents_found, dispatch_uid="inspector.metrics")
        problems_found.connect(metrics.problems_found, dispatch_uid="inspector.metrics")
        if inspector_configuration().TRACES:
            tracing.set_up()
