"""The routes of the doctor's pages."""

from django.urls import path

from inspector.access import erase_required, read_required
from inspector.rooms.doctor import views

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
]
