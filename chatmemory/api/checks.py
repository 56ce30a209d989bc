"""The system check of the page with the API's documentation."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.core.checks import Warning as Caution
from django.urls import NoReverseMatch, reverse

_SCRIPTS = "drf_spectacular_sidecar"


def check_docs_have_scripts(**_: object) -> list[Caution]:
    """Tell that the package is missing which has Swagger's scripts, where there is the page."""
    if apps.is_installed(_SCRIPTS) or not getattr(settings, "ROOT_URLCONF", None):
        return []
    try:
        page = reverse("chatmemory:docs")
    except NoReverseMatch:
        return []
    return [
        Caution(
            f"{page} is a blank page: it takes its scripts from {_SCRIPTS!r}.",
            hint="Add it to INSTALLED_APPS.",
            id="chatmemory.W002",
        )
    ]
