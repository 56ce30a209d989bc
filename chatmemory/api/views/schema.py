"""The OpenAPI document, and Swagger to read it."""

from __future__ import annotations

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from chatmemory.api.views.base import Guarded


class Schema(Guarded, SpectacularAPIView):
    """The API as an OpenAPI document."""


class Docs(Guarded, SpectacularSwaggerSplitView):
    """The API in Swagger."""
