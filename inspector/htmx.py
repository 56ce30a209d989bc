"""Pages, their fragments and their parts: one URL, one context and one template serve all three."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from inspector.parts import Piece, changes, held_parts, markup_of, parts_in

HELD_HEADER = "Held-Parts"


def render_page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any]
) -> HttpResponse:
    """Renders the fragment for an HTMX request, and the whole page for any other.

    A boosted link and a restored history entry replace the whole page, so they get it too. A
    request that tells the parts of its page gets only those that differ.
    """
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    template = fragment if wants_fragment else page
    pieces = parts_in(render_to_string(template, context, request))
    held = held_parts(request.headers.get(HELD_HEADER, "")) if wants_fragment else {}
    response = _changes(pieces, held) if _holds(held, pieces) else HttpResponse(markup_of(pieces))
    patch_vary_headers(response, ["HX-Request", HELD_HEADER])
    return response


def _holds(held: dict[str, str], pieces: tuple[Piece, ...]) -> bool:
    """Whether the fragment's own element is as it was, so that it need not be replaced."""
    outer = pieces[0]
    return not isinstance(outer, str) and held.get(outer.id) == getattr(outer, "digest", None)


def _changes(pieces: tuple[Piece, ...], held: dict[str, str]) -> HttpResponse:
    return HttpResponse("".join(changes(pieces, held)), headers={"HX-Reswap": "none"})
