from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from chatmemory.signals import cases_found, incidents_found, memory_changed, problems_found
from inspector.conf import inspector_configuration
from inspector.shell import room
from inspector.shell.load import load_changed, request_refused


class Observability(room.SiteRoom):
    name = "inspector.rooms.observability"
    verbose_name = "Metrics and traces"
    urls = "inspector.rooms.observability.urls"

    def ready(self) -> None:
        from inspector.rooms.observability import metrics, tracing

        memory_changed.connect(metrics.memory_changed, dispatch_uid="inspector.metrics")
        incidents_found.connect(metrics.incidents_found, dispatch_uid="inspector.metrics")
        metrics.begin_cases()
        cases_found.connect(metrics.cases_found, dispatch_uid="inspector.metrics")
        problems_found.connect(metrics.problems_found, dispatch_uid="inspector.metrics")
        request_refused.connect(metrics.request_refused, dispatch_uid="inspector.metrics")
        load_changed.connect(metrics.load_changed, dispatch_uid="inspector.metrics")
        if inspector_configuration().TRACES:
            tracing.set_up()

    def observing(
        self, method: str, headers: Mapping[str, str]
    ) -> AbstractContextManager[room.RecordAnswer]:
        from inspector.rooms.observability import requests

        return requests.observing(method, headers)
