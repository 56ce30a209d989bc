"""The addresses of a project that mounts the API under another namespace."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("ops/chat/", include("inspector.urls")),
    path("ops/chat/api/", include("chatmemory.api.urls", namespace="memories")),
]
