"""Refuses addresses of a project that lacks the applications: without them, models fail first, with
an error that says less.
"""

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

for _name in ("chatmemory", "inspector"):
    if not apps.is_installed(_name):
        raise ImproperlyConfigured(
            f'include("inspector.urls") needs {_name!r} in INSTALLED_APPS: see docs/mounting.md'
        )
