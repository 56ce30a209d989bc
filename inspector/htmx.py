"""Pages and their fragments: one URL, one context and one template serve both."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

PAGE, FRAGMENT = "inspector/base.html", "inspector/_fragment.html"


def render_page_or_fragment(
    request: HttpRequest, page: str, context: dict[str, Any]
) -> HttpResponse:
    """Renders a template's title and its block `fragment` for an HTMX request, all for any other.

    The template extends its `layout`. A boosted link and a restored history entry replace the whole
    page, so they get it too.
    """
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    layout = FRAGMENT if wants_fragment else PAGE
    response = render(request, page, context | {"layout": layout})
    patch_vary_headers(response, ["HX-Request"])
    return response
