"""What the window shows of a message otherwise than the history: the overrides of a stay.

The column is the text of a JSON object: the properties that differ from the stored message, and a
random salt. Null means that nothing differs. The only property is `attributes`, which a client
changed; the message is in the history once, and past windows stay as they were.

The digest of a step has the SHA-256 of this text. A redaction leaves only the SHA-256, so that the
digest stays valid and nobody can guess what was erased.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from chatmemory.core.codec import decode_json, write_json
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import ChatMessage, with_attributes

SALT_BYTES = 16
_ERASED = "erased"


def overriding(attributes: Mapping[str, Any]) -> str:
    """Return the overrides of a stay whose message has these attributes."""
    return write_json({"attributes": attributes, "salt": os.urandom(SALT_BYTES).hex()})


def overridden(message: ChatMessage, overrides: str | None) -> ChatMessage:
    """Return a stored message as a stay with these overrides shows it.

    Raises InvalidMessage for overrides that cannot be read.
    """
    if overrides is None or is_erased(overrides):
        return message
    values = decode_json(overrides)
    if not isinstance(values, dict) or values.keys() != {"attributes", "salt"}:
        raise InvalidMessage("overrides must have attributes and a salt")
    return with_attributes(message, values["attributes"])


def erased(overrides: str) -> str:
    """Return what a redaction leaves of overrides."""
    return json.dumps({_ERASED: digest_of_overrides(overrides)})


def is_erased(overrides: str) -> bool:
    return overrides.startswith(f'{{"{_ERASED}"')


def kept(overrides: str | None) -> str | None:
    """Return overrides for another stay of the same message: None if they were erased."""
    return None if overrides is None or is_erased(overrides) else overrides


def digest_of_overrides(overrides: str) -> str:
    """Return the SHA-256 of overrides in hexadecimal, also after they were erased."""
    if is_erased(overrides):
        return str(json.loads(overrides)[_ERASED])
    return sha256(overrides.encode(errors="surrogatepass")).hexdigest()
