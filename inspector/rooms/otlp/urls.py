"""The routes to which apps send spans and log records."""

from __future__ import annotations

from django.urls import path

from inspector.rooms.otlp.intake import VIEWS

urlpatterns = [
    path(f"otlp/v1/{signal}", view, name=f"otlp-{signal}") for signal, view in VIEWS.items()
]
