"""The same below the language of each reader."""

from __future__ import annotations

from django.conf.urls.i18n import i18n_patterns

from . import urls

urlpatterns = i18n_patterns(*urls.urlpatterns)
