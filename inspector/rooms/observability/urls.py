from django.urls import path

from inspector.rooms.observability import views

urlpatterns = [path("metrics", views.metrics, name="metrics")]
