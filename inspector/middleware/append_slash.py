"""Redirects to the address with a trailing slash."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponsePermanentRedirect
from django.middleware import common


class PermanentRedirectKeepingMethod(HttpResponsePermanentRedirect):
    """308: the client repeats the request with the same method and body."""

    def __init__(self, redirect_to: str, **kwargs: Any) -> None:
        super().__init__(redirect_to, preserve_request=True, **kwargs)


class CommonMiddleware(common.CommonMiddleware):
    """Like Django's, which answers 301 instead: clients then repeat a POST as a GET."""

    response_redirect_class = PermanentRedirectKeepingMethod
