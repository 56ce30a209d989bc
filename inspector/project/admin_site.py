"""Django's admin, with scripts in English."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import override


class AdminSite(admin.AdminSite):
    """Pages have no language (see InspectorMiddleware), and the admin's scripts need one."""

    def i18n_javascript(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with override("en"):
            return super().i18n_javascript(request, extra_context)
