"""Fingerprints of texts: digests with a secret key, from which nobody can guess the text.

The key is derived from SECRET_KEY. Fingerprints with a key of SECRET_KEY_FALLBACKS are still
recognized.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac


def fingerprint(purpose: str, content: Iterable[bytes]) -> str:
    """Return the fingerprint of `content`, a hexadecimal digest with a secret key. The same content
    has a different fingerprint for each `purpose`.

    The fingerprint does not depend on how `content` is split into parts.
    """
    (found,) = _fingerprints(purpose, content, [settings.SECRET_KEY])
    return found


def is_fingerprint(found: str, purpose: str, content: Iterable[bytes]) -> bool:
    """Return whether `found` is the fingerprint of this content for this purpose, with the current
    key or an earlier key.
    """
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(
        constant_time_compare(found, each) for each in _fingerprints(purpose, content, secrets)
    )


def _fingerprints(
    purpose: str, content: Iterable[bytes], secrets: Iterable[str | bytes]
) -> list[str]:
    digests: list[hmac.HMAC] = [
        salted_hmac(f"chatmemory.{purpose}", b"", secret, algorithm="sha256") for secret in secrets
    ]
    for part in content:
        for digest in digests:
            digest.update(part)
    return [digest.hexdigest() for digest in digests]
