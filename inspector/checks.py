"""System checks for projects that mount the pages. docs/mounting.md lists the requirements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
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
def check_project(**_: object) -> list[CheckMessage]:
    """Return an error for each application, middleware, context processor and URL that the pages
    need and the project lacks. Also return warnings, such as one about unlimited sign-in attempts.
    """
    return [
        *(*_apps(), *_rooms(), *_middleware(), *_templates()),
        *(*_urls(), *_sign_in(), *_static_files()),
    ]


def _apps() -> Iterator[CheckMessage]:
    for name in _APPS:
        if not apps.is_installed(name):
            yield Error(
                f"{name!r} is missing in INSTALLED_APPS: the inspector needs this app. Add it "
                "there.",
                id="inspector.E001",
            )


def _rooms() -> Iterator[CheckMessage]:
    """Report a project without any room, with the line that installs them."""
    if ROOMS and not any(apps.is_installed(name) for name in ROOMS):
        yield Caution(
            "INSTALLED_APPS has no room (feature) of the inspector, so most of its pages are "
            "missing.",
            hint="Write in the settings: import inspector, and INSTALLED_APPS += inspector.ROOMS.",
            id="inspector.W003",
        )


def _middleware() -> Iterator[CheckMessage]:
    if not set(MIDDLEWARE) <= set(settings.MIDDLEWARE):
        yield Error(
            "The inspector's middleware is missing in MIDDLEWARE.",
            hint="Write in the settings: import inspector, and MIDDLEWARE += inspector.MIDDLEWARE.",
            id="inspector.E002",
        )
    elif _LOCALE in settings.MIDDLEWARE[settings.MIDDLEWARE.index(MIDDLEWARE[0]) :]:
        yield Error(f"The inspector's middleware must come after {_LOCALE!r}.", id="inspector.E010")
    for id, needed in _MIDDLEWARE.items():
        name = needed.rpartition(".")[2]  # a project may have its own
        if not any(each.endswith(name) for each in settings.MIDDLEWARE):
            yield Error(
                f"{needed!r} is missing in MIDDLEWARE: the inspector needs this middleware. Add "
                "it there.",
                id=id,
            )


def _templates() -> Iterator[CheckMessage]:
    found = [each for each in engines.all() if isinstance(each, DjangoTemplates)]
    if not found:
        yield Error(
            "TEMPLATES has no entry with Django's own backend, which the inspector needs. Add "
            "such an entry.",
            id="inspector.E004",
        )
        return
    for name in _CONTEXT_PROCESSORS:
        if name not in found[0].engine.context_processors:
            yield Error(
                f"The context processor {name!r} is missing in TEMPLATES: the inspector's "
                "templates need it. Add it there.",
                id="inspector.E005",
            )


def _urls() -> Iterator[CheckMessage]:
    for name, include in _INCLUDES.items():
        try:
            reverse(name)
        except NoReverseMatch:
            yield Error(
                f"The site has no URL for {name!r}.",
                hint=f"Add this line to the URL patterns, under any prefix: {include}.",
                id="inspector.E006",
            )


def _sign_in() -> Iterator[CheckMessage]:
    """Warn if sign-in attempts are not limited: people sign in on the inspector's page, and
    Django's own backend is the first that compares passwords.
    """
    backends = settings.AUTHENTICATION_BACKENDS
    compares = "django.contrib.auth.backends.ModelBackend"
    with suppress(NoReverseMatch):
        if sign_in_url() == reverse("inspector:sign-in") and backends[:1] == [compares]:
            yield Caution(
                "The inspector's sign-in page does not limit how often somebody can try wrong "
                "passwords.",
                hint="Limit sign-in attempts, such as with django-axes, or set LOGIN_URL to a "
                "page that limits them.",
                id="inspector.W002",
            )


def _static_files() -> Iterator[CheckMessage]:
    if urlsplit(settings.STATIC_URL or "").netloc:
        yield Caution(
            "STATIC_URL names another host, but the inspector's pages load scripts, styles and "
            "icons only from their own host.",
            hint="Serve static files from the host of the pages: set STATIC_URL to a path, such "
            'as "static/".',
            id="inspector.W001",
        )
