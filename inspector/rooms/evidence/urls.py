"""The route of the page about terms that summaries lost."""

from django.urls import path

from inspector.access import read_required
from inspector.rooms.evidence import views

urlpatterns = [
    path("lab/compactions/", read_required(views.compactions), name="lab-compactions"),
]
