"""The routes of the pages for repairs."""

from django.urls import path

from inspector.access import write_required
from inspector.rooms.repairs import views

_conversation = "c/<memory:memory_id>/"

urlpatterns = [
    path("doctor/repair/", write_required(views.repair_many), name="repair-many"),
    path("doctor/raise/", write_required(views.raise_limits), name="raise-limits"),
    path("doctor/undo/", write_required(views.undo_many), name="undo-many"),
    path(f"{_conversation}repair/", write_required(views.repair), name="repair"),
    path(
        f"{_conversation}repair/<int:step>/undo/",
        write_required(views.undo_repair),
        name="undo-repair",
    ),
]
