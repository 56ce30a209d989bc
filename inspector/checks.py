"""System checks for projects that mount the pages. docs/mounting.md lists the requirements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.urls import NoReverseMatch, reverse

from inspector import MIDDLEWARE, ROOMS
from inspector.access import sign_in_url

_APPS = (
    "chatmemory",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
)
_MIDDLEWARE = {
    "inspector.E003": "django.contrib.auth.middleware.AuthenticationMiddleware",
    "inspector.E007": "django.middleware.csrf.CsrfViewMiddleware",
}
_LOCALE = "django.middleware.locale.LocaleMiddleware"
_CONTEXT_PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
)
_INCLUDES = {
    "inspector:overview": 'path("chat/", include("inspector.urls"))',
    "chatmemory:docs": 'path("chat/api/", include("chatmemory.api.urls"))',
}


@register
def check_project(**_: Any) -> list[CheckMessage]:
    """Return an error for each missing application, middleware, context processor and URL."""
    return [
        *(*_apps(), *_rooms(), *_middleware(), *_templates()),
        *(*_urls(), *_sign_in(), *_static_files()),
    ]


def _apps() -> Iterator[CheckMessage]:
    for name in _APPS:
        if not apps.is_installed(name):
            yield Error(f"The inspector needs {name!r} in INSTALLED_APPS.", id="inspector.E001")


def _rooms() -> Iterator[CheckMessage]:
    """Report a project without any room, with the line that installs them."""
    if ROOMS and not any(apps.is_installed(name) for name in ROOMS):
        yield Caution(
            "No room of the inspector is installed: most of its pages are in rooms.",
            hint="In the settings: import inspector, and INSTALLED_APPS += inspector.ROOMS.",
            id="inspector.W003",
        )


def _middleware() -> Iterator[CheckMessage]:
    if not set(MIDDLEWARE) <= set(settings.MIDDLEWARE):
        yield Error(
            "The inspector's middleware is missing.",
            hint="In the settings: import inspector, and MIDDLEWARE += inspector.MIDDLEWARE.",
            id="inspector.E002",
        )
    elif _LOCALE in settings.MIDDLEWARE[settings.MIDDLEWARE.index(MIDDLEWARE[0]) :]:
        yield Error(f"The inspector's middleware must come after {_LOCALE!r}.", id="inspector.E010")
    for id, needed in _MIDDLEWARE.items():
        name = needed.rpartition(".")[2]  # a project may have its own
        if not any(each.endswith(name) for each in settings.MIDDLEWARE):
            yield Error(f"The inspector needs {needed!r} in MIDDLEWARE.", id=id)


def _templates() -> Iterator[CheckMessage]:
    found = [each for each in engines.all() if isinstance(each, DjangoTemplates)]
    if not found:
        yield Error("The inspector needs Django's templates in TEMPLATES.", id="inspector.E004")
        return
    for name in _CONTEXT_PROCESSORS:
        if name not in found[0].engine.context_processors:
            yield Error(
                f"The inspector's templates need the context processor {name!r}.",
                id="inspector.E005",
            )


def _urls() -> Iterator[CheckMessage]:
    for name, include in _INCLUDES.items():
        try:
            reverse(name)
        except NoReverseMatch:
            yield Error(
                f"No address leads to {name!r}.",
                hint=f"In the URL patterns, under any prefix: {include}.",
                id="inspector.E006",
            )


def _sign_in() -> Iterator[CheckMessage]:
    """Warn of the inspector's sign-in page in a project whose first backend compares passwords: a
    backend that limits wrong ones would come first.
    """
    backends = settings.AUTHENTICATION_BACKENDS
    compares = "django.contrib.auth.backends.ModelBackend"
    with suppress(NoReverseMatch):
        if sign_in_url() == reverse("inspector:sign-in") and backends[:1] == [compares]:
            yield Caution(
                "The inspector's sign-in page limits no wrong passwords.",
                hint="Add a limit, such as django-axes, or set LOGIN_URL to a page that has one.",
                id="inspector.W002",
            )


def _static_files() -> Iterator[CheckMessage]:
    if urlsplit(settings.STATIC_URL or "").netloc:
        yield Caution(
            "The inspector's pages load scripts, styles and icons from their own host only.",
            hint="Serve static files from the host of the pages: STATIC_URL without a host.",
            id="inspector.W001",
        )
