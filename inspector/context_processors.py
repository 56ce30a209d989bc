"""Variables that every template has."""

from django.http import HttpRequest

THEMES = ("light", "dark")
# What can be switched on for a projector: large type, and marks of what leaves next hidden.
DISPLAYS = {"type": "large", "foresight": "hidden"}


def theme(request: HttpRequest) -> dict[str, str]:
    """Adds `theme`: the theme chosen in the cookie, or "" to follow the system's."""
    chosen = request.COOKIES.get("theme", "")
    return {"theme": chosen if chosen in THEMES else ""}


def display(request: HttpRequest) -> dict[str, dict[str, str]]:
    """Adds `display`: what is switched on for a projector, as its cookies say."""
    on = {name: on for name, on in DISPLAYS.items() if request.COOKIES.get(name) == on}
    return {"display": on}
