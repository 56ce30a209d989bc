"""The routes of the pages of calls, and those to which apps send their spans."""

from __future__ import annotations

from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from inspector.rooms.calls import intake

urlpatterns = [
    path("otlp/v1/traces", intake.VIEWS["traces"], name="otlp-traces"),
    path("otlp/v1/logs", intake.VIEWS["logs"], name="otlp-logs"),
    path("otlp/v1/metrics", intake.VIEWS["metrics"], name="otlp-metrics"),
]
