"""Pages and their fragments: one URL and one context serve both."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers


def render_page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any]
) -> HttpResponse:
    """Renders the fragment for an HTMX request, and the whole page for any other.

    A boosted link and a restored history entry replace the whole page, so they get it too.
    """
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    response = render(request, fragment if wants_fragment else page, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
