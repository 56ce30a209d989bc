"""The pages of the doctor."""

from django.urls import path

from inspector.access import erase_required, read_required, write_required
from inspector.rooms.doctor import repairing, views

_conversation = "c/<memory:memory_id>/"

urlpatterns = [
    path("doctor/", read_required(views.doctor), name="doctor"),
    path("doctor/rules/", read_required(views.doctor_rules), name="doctor-rules"),
    path("doctor/error/", read_required(views.error), name="doctor-error"),
    path("doctor/providers/", erase_required(views.providers), name="doctor-providers"),
    path(
        "doctor/providers/forget/",
        erase_required(views.forget),
        name="doctor-providers-forget",
    ),
    path("doctor/repair/", write_required(repairing.repair_many), name="repair-many"),
    path("doctor/raise/", write_required(repairing.raise_limits), name="raise-limits"),
    path("doctor/undo/", write_required(repairing.undo_many), name="undo-many"),
    path(f"{_conversation}repair/", write_required(repairing.repair), name="repair"),
    path(
        f"{_conversation}repair/<int:step>/undo/",
        write_required(repairing.undo_repair),
        name="undo-repair",
    ),
]
