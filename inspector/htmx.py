"""Page or fragment: one URL gives both, from one context."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

SEARCH_MAX = 200


def searchable(words: str) -> str:
    """What a reader typed, without what no stored text holds, cut to what is worth searching."""
    return words.replace("\0", "").encode(errors="ignore").decode().strip()[:SEARCH_MAX]


def render_page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any]
) -> HttpResponse:
    """The fragment for an HTMX request, the whole page otherwise (a history restore included)."""
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    response = render(request, fragment if wants_fragment else page, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
