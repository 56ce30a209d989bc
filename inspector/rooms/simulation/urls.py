"""The routes of the composer below a conversation, and of the comparison of policies."""

from django.urls import path

from inspector.access import read_required, write_required
from inspector.rooms.simulation import comparing, views

_conversation = "c/<memory:memory_id>/"

urlpatterns = [
    path(f"{_conversation}simulate/", read_required(views.simulate), name="simulate"),
    path(f"{_conversation}verdict/", read_required(views.verdict), name="verdict"),
    path(f"{_conversation}add/", write_required(views.add), name="add"),
    path(f"{_conversation}branch/", write_required(views.branch), name="branch"),
    path(f"{_conversation}compare/", read_required(comparing.compare_policies), name="compare"),
    path(f"{_conversation}adopt/", write_required(comparing.adopt), name="adopt"),
]
