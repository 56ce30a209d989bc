"""The routes of the API, and of its documentation."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.urls import include, path

import chatmemory.api.installed  # (refuses a project that lacks the application)
import chatmemory.converters  # noqa: F401  (registers <memory:…>)
from chatmemory.api.views.history import (
    MemoryHistory,
    MemoryStep,
    MemorySteps,
    SearchHistory,
    SearchOwnHistory,
)
from chatmemory.api.views.memories import Memories, MemoryDetail, unknown
from chatmemory.api.views.messages import Compaction, MemoryMessage, MemoryMessages, Pin, Store
from chatmemory.api.views.root import Root
from chatmemory.api.views.schema import Docs, Schema
from chatmemory.rooms import patterns_of, rooms

app_name = "chatmemory"

_one = "memories/<memory:memory_id>/"

_v1 = [
    path("", Root.as_view(), name="root"),
    path("memories/", Memories.as_view(), name="memories"),
    path(_one, MemoryDetail.as_view(), name="memory"),
    path(f"{_one}messages/", MemoryMessages.as_view(), name="messages"),
    path(f"{_one}messages/<int:seq>/", MemoryMessage.as_view(), name="message"),
    path(f"{_one}messages/<int:seq>/pin/", Pin.as_view(), name="pin"),
    path(f"{_one}compact/", Compaction.as_view(), name="compact"),
    path(f"{_one}history/", MemoryHistory.as_view(), name="history"),
    path(f"{_one}search_history/", SearchHistory.as_view(), name="search-history"),
    path("search_history/", SearchOwnHistory.as_view(), name="search-own-history"),
    path(f"{_one}steps/", MemorySteps.as_view(), name="steps"),
    path(f"{_one}steps/<int:n>/", MemoryStep.as_view(), name="step"),
    path("store/<memory:memory_id>/", Store.as_view(), name="store"),
    *patterns_of(room.api_urls for room in rooms()),
    path("memories/<path:rest>", unknown, name="unknown-memory"),
    path("store/<path:rest>", unknown, name="unknown-store"),
    path("schema/", Schema.as_view(), name="schema"),
]

_docs: Any = login_required(Docs.as_view())  # a function that gets an attribute below
_docs.login_required = True  # for Django's LoginRequiredMiddleware, and the inspector's

urlpatterns = [
    path("v1/", include(_v1)),
    path("docs/", _docs, name="docs"),
]
