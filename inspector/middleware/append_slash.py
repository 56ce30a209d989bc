"""Addresses that want a last slash."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponsePermanentRedirect
from django.middleware import common


class SentOn(HttpResponsePermanentRedirect):
    """308: the same method and body again, at the other address."""

    def __init__(self, redirect_to: str, **kwargs: Any) -> None:
        super().__init__(redirect_to, preserve_request=True, **kwargs)


class CommonMiddleware(common.CommonMiddleware):
    """Django's sends a request without its last slash on as a GET, and a POST is lost."""

    response_redirect_class = SentOn
