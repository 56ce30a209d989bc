"""How a reader wants the pages: the theme, and what is switched on for a projector.

Cookies keep it. Their names begin with "inspector_", because a project has cookies of its own.
"""

from __future__ import annotations

from django.http import HttpRequest

THEMES = ("light", "dark")
DISPLAYS = {"type": "large", "foresight": "hidden"}


def cookie(name: str) -> str:
    """Return the name of the cookie that keeps a choice, such as "theme"."""
    return f"inspector_{name}"


def theme_of(request: HttpRequest) -> str:
    """Return the chosen theme, or "" to follow the system's."""
    chosen = request.COOKIES.get(cookie("theme"), "")
    return chosen if chosen in THEMES else ""


def switched_on(request: HttpRequest) -> dict[str, str]:
    """Return what is switched on for a projector: large type, or foresight hidden."""
    return {name: on for name, on in DISPLAYS.items() if request.COOKIES.get(cookie(name)) == on}
