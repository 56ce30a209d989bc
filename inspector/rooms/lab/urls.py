from django.urls import path

from inspector.access import read_required, write_required
from inspector.rooms.lab import views

urlpatterns = [
    path("lab/", read_required(views.lab), name="lab"),
    path("lab/adopt/", write_required(views.adopt_for_many), name="adopt-for-many"),
    path("lab/fix/", write_required(views.fix), name="lab-fix"),
]
