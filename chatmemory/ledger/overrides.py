"""The overrides of a stay: properties that the window shows in place of the message's own.

The column is the text of a JSON object: the properties that differ from the stored message, and a
random salt. Null means that nothing differs. The property is `attributes`, which a client changed,
or `text`, the stub in place of a tool result (see `windows.clearing`). The message is in the
history once, and past windows stay as they were.

The digest of a step has the SHA-256 of this text. A redaction leaves only the SHA-256, so that the
digest stays valid and nobody can guess the erased text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.codec import decode_json, write_json
from chatmemory.messages.message import ChatMessage, with_attributes
from chatmemory.windows.clearing import stub_of

SALT_BYTES = 16
_ERASED, _STUB = "erased", "stub"


def overriding(attributes: Mapping[str, Any]) -> str:
    """Return the overrides of a stay whose message has these attributes."""
    return write_json({"attributes": attributes, "salt": os.urandom(SALT_BYTES).hex()})


def overriding_text(text: str) -> str:
    """Return the overrides of a stay whose message is a stub with this text."""
    return write_json({"text": text, "salt": os.urandom(SALT_BYTES).hex()})


def overridden(message: ChatMessage, overrides: str | None) -> ChatMessage:
    """Return a stored message with the overrides of a stay.

    Raises InvalidMessage for overrides that cannot be read.
    """
    if overrides is None or is_erased(overrides):
        return message
    values = decode_json(overrides)
    if isinstance(values, dict) and values.keys() == {"text", "salt"}:
        return stub_of(message, values["text"])
    if not isinstance(values, dict) or values.keys() != {"attributes", "salt"}:
        raise InvalidMessage("overrides must have attributes or a text, and a salt")
    return with_attributes(message, values["attributes"])


def text_of_stub(overrides: str | None) -> str | None:
    """Return the text of a stub; None for other or erased overrides."""
    text: str | None = decode_json(overrides or "{}").get("text")
    return text


def is_of_stub(overrides: str | None) -> bool:
    """Return whether overrides belong to a stub, even if they were erased."""
    return overrides is not None and not {"text", _STUB}.isdisjoint(decode_json(overrides))


def erased(overrides: str) -> str:
    """Return overrides as a redaction leaves them."""
    left = {_ERASED: digest_of_overrides(overrides)}
    return json.dumps(left | {_STUB: True} if is_of_stub(overrides) else left)


def is_erased(overrides: str) -> bool:
    return overrides.startswith(f'{{"{_ERASED}"')


def kept(overrides: str | None) -> str | None:
    """Return overrides for another stay of the same message, or None if they were erased."""
    return None if overrides is None or is_erased(overrides) else overrides


def digest_of_overrides(overrides: str) -> str:
    """Return the SHA-256 of overrides in hexadecimal, even if they were erased."""
    if is_erased(overrides):
        return str(json.loads(overrides)[_ERASED])
    return sha256(overrides.encode(errors="surrogatepass")).hexdigest()
