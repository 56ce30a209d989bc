"""Variables that every template has."""

from django.http import HttpRequest

THEMES = ("light", "dark")


def theme(request: HttpRequest) -> dict[str, str]:
    """Adds `theme`: the theme chosen in the cookie, or "" to follow the system's."""
    chosen = request.COOKIES.get("theme", "")
    return {"theme": chosen if chosen in THEMES else ""}
