"""Fingerprints of what people wrote: digests with a key, so that nobody can guess the words.

The key is derived from SECRET_KEY. Fingerprints of the keys in SECRET_KEY_FALLBACKS are still
recognised.
"""

from __future__ import annotations

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac


def fingerprint(purpose: str, content: bytes, secret: str | bytes | None = None) -> str:
    """Return the fingerprint of a content, which differs for each purpose."""
    return salted_hmac(f"chatmemory.{purpose}", content, secret, algorithm="sha256").hexdigest()


def is_fingerprint(found: str, purpose: str, content: bytes) -> bool:
    """Return whether a fingerprint was made of this content."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(
        constant_time_compare(found, fingerprint(purpose, content, secret)) for secret in secrets
    )
