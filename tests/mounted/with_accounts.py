"""The same, with a sign-in page at Django's default address."""

from __future__ import annotations

from django.urls import path

from . import urls

urlpatterns = [path("accounts/login/", urls.own), *urls.urlpatterns]
