"""Renders pages, whole or as a fragment, and gets a reader's display settings, such as the theme,
from cookies.

The names of the cookies begin with "inspector_", because a project has cookies of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from inspector.forms.fields import first_problem

PAGE, FRAGMENT = "inspector/base.html", "inspector/shared/_fragment.html"
THEMES = ("light", "dark")
DISPLAYS = {"type": "large", "foresight": "hidden"}
PageContext = dict[str, Any]  # the template of a page knows the types of its values


def cookie(name: str) -> str:
    """Return the name of the cookie for a choice of the reader, such as `inspector_theme` for
    "theme".
    """
    return f"inspector_{name}"


def theme_of(request: HttpRequest) -> str:
    """Return the reader's theme, or "" to follow the theme of the operating system."""
    chosen = request.COOKIES.get(cookie("theme"), "")
    return chosen if chosen in THEMES else ""


def switched_on(request: HttpRequest) -> dict[str, str]:
    """Return the display settings that the reader has turned on, such as {"type": "large"}.

    - `type` is "large" for large type.
    - `foresight` is "hidden" if the page must not show which messages leave next.
    """
    return {name: on for name, on in DISPLAYS.items() if request.COOKIES.get(cookie(name)) == on}


def render_page_or_fragment(
    request: HttpRequest, page: str, context: Mapping[str, object]
) -> HttpResponse:
    """Return a response with the whole page. For most HTMX requests, return only a fragment of the
    page.

    The fragment is the title and the block `fragment` of the page's template. An HTMX request gets
    the whole page if it comes from a link with `hx-boost`, or restores a page of the browser's
    history.
    """
    htmx = request.htmx  # type: ignore[attr-defined]  # set by InspectorMiddleware
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    layout = FRAGMENT if wants_fragment else PAGE
    response = render(request, page, {**context, "layout": layout})
    patch_vary_headers(response, ["HX-Request"])
    return response


def render_form(
    request: HttpRequest, page: str, form: forms.Form, **context: object
) -> HttpResponse:
    """Return a page with a form. If the form has an error, the status is 422, and the first error
    is in the template's variable `problem`.
    """
    problem = first_problem(form)
    context |= {"form": form, "problem": problem}
    return render(request, page, context, status=422 if problem else 200)
