"""How large a body may be, by the class of its route: the table of docs/operations.md."""

from __future__ import annotations

from django.urls import ResolverMatch

from chatmemory.api.bodies import BodyLimit, api_limit
from chatmemory.formats import JsonBounds
from inspector.conf import configuration
from inspector.mount import is_api, needs_account

_MULTIPART = "multipart/form-data"
_WITH_A_FILE = frozenset({"import", "lab-of-file", "compare-file"})
_WITH_MESSAGES = frozenset({"simulate", "verdict", "add"})


def limit_of(method: str, path: str, match: ResolverMatch | None, content_type: str) -> BodyLimit:
    """Return the limit of a body that is sent to a page or to the API.

    Only multipart/form-data may be large: of a url-encoded form, 2 MB take 160 MB when parsed. What
    has no route, and what is for people without an account, may be smallest.
    """
    apps = match.app_names if match else ()
    if "chatmemory" in apps or is_api(path):
        return api_limit(method)
    name = match.url_name if match and "inspector" in apps else ""
    if content_type == _MULTIPART and name in _WITH_A_FILE:
        return upload_limit()
    if content_type == _MULTIPART and name in _WITH_MESSAGES:
        return messages_limit()
    return _limit("FORM_BYTES" if needs_account(match) else "OPEN_FORM_BYTES")


def upload_limit() -> BodyLimit:
    """Return the limit of a file, beside which its form may have other fields."""
    return _limit("UPLOAD_BYTES")._replace(beside=configuration().FORM_BYTES)


def upload_bounds() -> JsonBounds:
    """Return what a file may take in memory. With one emoji in it, Python keeps four bytes for each
    character of a text, and a message that is stored is there several times.
    """
    limit, manage = upload_limit(), configuration().MANAGE
    told = f"more than one of {limit}, may: import it with {manage} import_transcripts"
    return JsonBounds(limit.size * 9 // 2, limit.size // 3, told)


def messages_limit() -> BodyLimit:
    """Return the limit of a form with messages."""
    return _limit("MESSAGES_FORM_BYTES")


def _limit(setting: str) -> BodyLimit:
    return BodyLimit(getattr(configuration(), setting), f'INSPECTOR["{setting}"]')
