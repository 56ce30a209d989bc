from django.contrib.auth.decorators import login_required
from django.urls import include, path

import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from chatmemory.api import views

app_name = "api"

_one = "memories/<memory:memory_id>/"

_v1 = [
    path("memories/", views.Memories.as_view(), name="memories"),
    path(_one, views.MemoryDetail.as_view(), name="memory"),
    path(f"{_one}messages/", views.MemoryMessages.as_view(), name="messages"),
    path(f"{_one}messages/<int:seq>/", views.MemoryMessage.as_view(), name="message"),
    path(f"{_one}messages/<int:seq>/redact/", views.Redaction.as_view(), name="redact"),
    path(f"{_one}history/", views.MemoryHistory.as_view(), name="history"),
    path(f"{_one}steps/", views.MemorySteps.as_view(), name="steps"),
    path(f"{_one}steps/<int:n>/", views.MemoryStep.as_view(), name="step"),
    path(f"{_one}simulate/", views.Simulate.as_view(), name="simulate"),
    path("store/<memory:memory_id>/", views.Store.as_view(), name="store"),
    path("schema/", views.Schema.as_view(), name="schema"),
]

urlpatterns = [
    path("v1/", include(_v1)),
    path(
        "docs/",
        login_required(views.Docs.as_view(url_name="api:schema")),
        name="docs",
    ),
]
