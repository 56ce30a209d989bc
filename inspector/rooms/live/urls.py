from django.urls import path

from inspector.access import read_required
from inspector.rooms.live import views

urlpatterns = [
    path("live/", read_required(views.live_overview), name="live-overview"),
    path("c/<memory:memory_id>/live/", read_required(views.live), name="live"),
]
