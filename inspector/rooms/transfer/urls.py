"""The routes of imports and exports."""

from django.urls import path

from inspector.access import read_required, write_required
from inspector.rooms.transfer import views

urlpatterns = [
    path("import/", write_required(views.import_file), name="import"),
    path("import/examined/", write_required(views.examined), name="import-examined"),
    path("c/<memory:memory_id>/export/", read_required(views.export), name="export"),
]
