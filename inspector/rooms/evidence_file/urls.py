from django.urls import path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from inspector.access import read_required
from inspector.rooms.evidence_file import views

urlpatterns = [
    path(
        "c/<memory:memory_id>/evidence/", read_required(views.evidence_page), name="evidence-file"
    ),
]
