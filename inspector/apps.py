from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import pre_save

from chatmemory.signals import compacting, memory_changed


class InspectorConfig(AppConfig):
    name = "inspector"
    verbose_name = "Memory inspector"

    def ready(self) -> None:
        from inspector.access import sign_in_limit
        from inspector.observability import metrics, tracing

        memory_changed.connect(metrics.memory_changed, dispatch_uid="inspector.metrics")
        compacting.connect(sign_in_limit.forget_expired, dispatch_uid="inspector.sign_ins")
        pre_save.connect(
            sign_in_limit.without_parameters, "axes.AccessAttempt", dispatch_uid="inspector.sign_in"
        )
        if settings.OTEL:
            tracing.set_up()
