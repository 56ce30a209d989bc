"""The route for redacting a message."""

from django.urls import path

from inspector.access import erase_required
from inspector.rooms.erasure import views

urlpatterns = [
    path("c/<memory:memory_id>/redact/<int:seq>/", erase_required(views.redact), name="redact"),
]
