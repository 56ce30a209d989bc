"""The overrides of a stay: what a window shows instead of the stored text or attributes of a
message.

There are two overrides:

- `attributes`: attributes that a client changed.
- `text`: the placeholder of a cleared tool result (see `windows.clearing`).

The column `overrides` of a stay has a JSON object with the overrides and a random salt. Null means
that the stored message is shown.

The digest of a step covers only the SHA-256 of this JSON. A redaction erases the JSON, but leaves
its SHA-256, so the digest stays valid. If there was a placeholder, a mark of it is left, too.

A redacted message is shown as its tombstone (see `ledger.redaction`), so its new stays need no
overrides. But if it is a cleared tool result, its new stay has `STUB_MARK`.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256

from chatmemory.exceptions import InvalidMessage
from chatmemory.ledger.redaction import is_redacted
from chatmemory.messages.codec import decode_json, write_json
from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.messages.message import (
    ChatMessage,
    ToolExecutionResultMessage,
    text_of,
    with_attributes,
)
from chatmemory.messages.tombstones import is_tombstone
from chatmemory.windows.clearing import stub_of

SALT_BYTES = 16
_ERASED, _STUB = "erased", "stub"
STUB_MARK = json.dumps({_STUB: True})
_PROPERTIES = {"attributes", "text"}


def overriding(message: ChatMessage, text: str | None = None) -> str:
    """Return the overrides of a stay, as JSON text. Overrides are what a window shows instead of
    the stored values of a message.

    The JSON has the attributes of `message`, and if `text` is given, the text of a placeholder.
    """
    attributes: JsonMap = getattr(message, "attributes", {})
    shown = {"attributes": attributes} | ({} if text is None else {"text": text})
    return _salted(shown)


def overriding_text(stub: ChatMessage) -> str:
    """Return the overrides of a stay that shows `stub`, the placeholder of a cleared tool result,
    as JSON text.

    The JSON has the text of the placeholder. If the tool result is redacted, the JSON has only a
    mark.
    """
    return STUB_MARK if is_redacted(stub) else _salted({"text": text_of(stub)})


def _salted(shown: JsonDict) -> str:
    return write_json(shown | {"salt": os.urandom(SALT_BYTES).hex()})


def overridden(message: ChatMessage, overrides: str | None) -> ChatMessage:
    """Return a stored message as a stay shows it. A redacted message is returned unchanged.

    Raises InvalidMessage for overrides that cannot be read.
    """
    if overrides is None or is_erased(overrides) or overrides == STUB_MARK:
        return message
    values = decode_json(overrides)
    names = values.keys() - {"salt"} if isinstance(values, dict) else set()
    if not names or not names <= _PROPERTIES or "salt" not in values:
        raise InvalidMessage("overrides must have attributes or a text, and a salt")
    if is_redacted(message):
        return message
    shown = stub_of(message, values["text"]) if "text" in names else message
    return with_attributes(shown, values["attributes"]) if "attributes" in names else shown


def readings(message: ChatMessage, overrides: str | None) -> list[ChatMessage]:
    """Return the messages that a stay may have shown. Usually there is only one: `message`, which
    is the stored message with the `overrides` applied.

    For some rows of earlier versions, it is unknown whether the stay showed the text or the
    placeholder of a tool result. Then the message is returned in both forms.
    """
    if overrides is None or is_of_stub(overrides):
        return [message]
    if not isinstance(message, ToolExecutionResultMessage):
        return [message]
    return [message, with_attributes(stub_of(message), message.attributes)]


def text_of_stub(overrides: str | None, said: str) -> str | None:
    """Return the placeholder text that a stay shows instead of a cleared tool result. None if there
    is no placeholder, or if its text was erased.

    `said` is the stored text of the message.
    """
    values = decode_json(overrides or "{}")
    if values.keys().isdisjoint({"text", _STUB}) or _ERASED in values:
        return None
    text: str = said if is_tombstone(said) else values.get("text", said)
    return text


def is_of_stub(overrides: str | None) -> bool:
    """Return whether a stay with these overrides shows the placeholder of a cleared tool result.
    True even if the text of the placeholder was erased.
    """
    return overrides is not None and not {"text", _STUB}.isdisjoint(decode_json(overrides))


def erased(overrides: str) -> str:
    """Return what a redaction leaves of a stay's overrides: their SHA-256, and a mark if the stay
    showed a placeholder.
    """
    left = {_ERASED: digest_of_overrides(overrides)}
    return json.dumps(left | {_STUB: True} if is_of_stub(overrides) else left)


def is_erased(overrides: str) -> bool:
    return overrides.startswith(f'{{"{_ERASED}"')


def kept(overrides: str | None) -> str | None:
    """Return the overrides for the next stay of a message, given the overrides of its last stay.

    If a redaction erased the overrides, return the mark of a placeholder, or None if there was no
    placeholder. Otherwise, return them unchanged.
    """
    if overrides is None or not is_erased(overrides):
        return overrides
    return STUB_MARK if is_of_stub(overrides) else None


def digest_of_overrides(overrides: str) -> str:
    """Return the SHA-256 of a stay's overrides, in hexadecimal. Erased overrides keep their
    SHA-256.
    """
    if is_erased(overrides):
        return str(json.loads(overrides)[_ERASED])
    return sha256(overrides.encode(errors="surrogatepass")).hexdigest()
