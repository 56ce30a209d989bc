"""Where people sign in."""

from __future__ import annotations

from django.conf import global_settings, settings
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve, reverse


def sign_in_url() -> str:
    """Return the address of the project's own sign-in page: its LOGIN_URL, or what it has at
    Django's default address. In a project without one, return that of the inspector's.
    """
    if settings.LOGIN_URL == global_settings.LOGIN_URL:
        try:
            resolve(settings.LOGIN_URL)
        except Resolver404:
            return reverse("inspector:sign-in")
    return resolve_url(settings.LOGIN_URL)


def after_signing_out() -> str:
    """Return the project's LOGOUT_REDIRECT_URL, else the sign-in page."""
    return resolve_url(settings.LOGOUT_REDIRECT_URL or sign_in_url())
