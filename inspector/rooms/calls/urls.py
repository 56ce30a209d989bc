"""The routes of the pages about model calls."""

from __future__ import annotations

from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from inspector.access import erase_required, read_required
from inspector.rooms.calls import views

urlpatterns = [
    path("calls/", read_required(views.intake), name="calls-intake"),
    path("c/<memory:memory_id>/calls/", read_required(views.calls), name="calls"),
    path("c/<memory:memory_id>/calls/<int:n>/", read_required(views.call), name="call"),
    path(
        "c/<memory:memory_id>/calls/<int:n>/redact/<int:place>/",
        erase_required(views.redact),
        name="redact-sent",
    ),
]
