"""Pages, their fragments and their parts: one URL, one context and one template serve all three."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from inspector.parts import Part, Piece, changes, held_parts, markup_of, parts_in

HELD_HEADER = "Held-Parts"
PAGE, FRAGMENT = "inspector/base.html", "inspector/_fragment.html"


def render_page_or_fragment(
    request: HttpRequest, page: str, context: dict[str, Any]
) -> HttpResponse:
    """Renders a template's title and its block `fragment` for an HTMX request, all for any other.

    The template extends its `layout`. A boosted link and a restored history entry replace the whole
    page, so they get it too. A request that tells the parts of its page gets the title and only
    those that differ.
    """
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    layout = FRAGMENT if wants_fragment else PAGE
    pieces = parts_in(render_to_string(page, context | {"layout": layout}, request))
    held = held_parts(request.headers.get(HELD_HEADER, "")) if wants_fragment else {}
    response = _changes(pieces, held) if _holds(held, pieces) else HttpResponse(markup_of(pieces))
    patch_vary_headers(response, ["HX-Request", HELD_HEADER])
    return response


def _holds(held: dict[str, str], pieces: tuple[Piece, ...]) -> bool:
    """Whether the fragment's own element is as it was, so that it need not be replaced."""
    outer = next((piece for piece in pieces if isinstance(piece, Part)), None)
    return outer is not None and held.get(outer.id) == outer.digest


def _changes(pieces: tuple[Piece, ...], held: dict[str, str]) -> HttpResponse:
    title = "".join([piece for piece in pieces if isinstance(piece, str)])
    return HttpResponse("".join([title, *changes(pieces, held)]), headers={"HX-Reswap": "none"})
