"""The routes of the pages of calls, and those to which apps send their spans."""

from __future__ import annotations

from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from inspector.access import read_required
from inspector.rooms.calls import intake, views

urlpatterns = [
    path("calls/", read_required(views.intake), name="calls-intake"),
    path("c/<memory:memory_id>/calls/", read_required(views.calls), name="calls"),
    path("c/<memory:memory_id>/calls/<int:n>/", read_required(views.call), name="call"),
    path("otlp/v1/traces", intake.VIEWS["traces"], name="otlp-traces"),
    path("otlp/v1/logs", intake.VIEWS["logs"], name="otlp-logs"),
    path("otlp/v1/metrics", intake.VIEWS["metrics"], name="otlp-metrics"),
]
