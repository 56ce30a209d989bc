"""The overrides of a stay: properties that a window shows instead of the stored message's own.

A stay is one period of a message in memory. Its column of overrides is the text of a JSON object:
the properties that differ from the stored message, and a random salt. Null means that nothing
differs. The properties are `attributes`, which a client changed, and `text`, the placeholder of a
cleared tool result (see `windows.clearing`). The history has the message once, and past windows
stay as they were.

The digest of a step has the SHA-256 of this text. A redaction leaves only the SHA-256, so that the
digest stays valid and nobody can guess the erased text. Later stays of a redacted message override
nothing, because the text of its tombstone wins (see `ledger.redaction`); stays of its placeholder
have `STUB_MARK`. Earlier versions stored the text of a placeholder that began after a redaction;
such rows are read as if they had the mark.
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
    """Return the overrides of a stay as JSON text: what the stay shows instead of the stored
    message. The stay shows the attributes of `message`, and if given, `text` as a placeholder.
    """
    attributes: JsonMap = getattr(message, "attributes", {})
    shown = {"attributes": attributes} | ({} if text is None else {"text": text})
    return _salted(shown)


def overriding_text(stub: ChatMessage) -> str:
    """Return the overrides of a stay as JSON text: what the stay shows instead of the stored
    message. The stay shows `stub`, the placeholder of a cleared tool result.
    """
    return STUB_MARK if is_redacted(stub) else _salted({"text": text_of(stub)})


def _salted(shown: JsonDict) -> str:
    return write_json(shown | {"salt": os.urandom(SALT_BYTES).hex()})


def overridden(message: ChatMessage, overrides: str | None) -> ChatMessage:
    """Return a stored message as a stay shows it, with the overrides applied. A redacted message
    stays as it is.

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
    """Return the messages that a stay may have shown. `message` is the stored message with the
    `overrides` of the stay applied.

    This is `message` alone, except for some rows of earlier versions. If a client changed the
    attributes of a cleared tool result, earlier versions kept the size and tokens of its
    placeholder, but not its text. So the stay may have shown the text or the placeholder, and two
    messages are returned.
    """
    if overrides is None or is_of_stub(overrides):
        return [message]
    if not isinstance(message, ToolExecutionResultMessage):
        return [message]
    return [message, with_attributes(stub_of(message), message.attributes)]


def text_of_stub(overrides: str | None, said: str) -> str | None:
    """Return the placeholder text that a stay shows instead of a cleared tool result. None if the
    stay shows no placeholder, or if the text of the placeholder was erased.

    `overrides` are those of the stay, and `said` is the stored text of the message.
    """
    values = decode_json(overrides or "{}")
    if values.keys().isdisjoint({"text", _STUB}) or _ERASED in values:
        return None
    text: str = said if is_tombstone(said) else values.get("text", said)
    return text


def is_of_stub(overrides: str | None) -> bool:
    """Return whether a stay shows the placeholder of a cleared tool result, given its overrides.
    True even if the text of the placeholder was erased.
    """
    return overrides is not None and not {"text", _STUB}.isdisjoint(decode_json(overrides))


def erased(overrides: str) -> str:
    """Return the JSON text that a redaction leaves of a stay's overrides (the text or attributes
    that it showed instead of the stored ones).

    Only the SHA-256 of the overrides remains, and a mark if the stay showed a placeholder.
    """
    left = {_ERASED: digest_of_overrides(overrides)}
    return json.dumps(left | {_STUB: True} if is_of_stub(overrides) else left)


def is_erased(overrides: str) -> bool:
    return overrides.startswith(f'{{"{_ERASED}"')


def kept(overrides: str | None) -> str | None:
    """Return the overrides for a further stay of the same message, given the overrides of its last
    stay. Overrides are the text or attributes that a stay shows instead of the stored ones.

    The overrides stay the same unless a redaction erased them. Then only the mark of a placeholder
    is left, or None if the stay showed no placeholder.
    """
    if overrides is None or not is_erased(overrides):
        return overrides
    return STUB_MARK if is_of_stub(overrides) else None


def digest_of_overrides(overrides: str) -> str:
    """Return the SHA-256, in hexadecimal, of a stay's overrides (the text or attributes that it
    shows instead of the stored ones). Erased overrides keep their SHA-256.
    """
    if is_erased(overrides):
        return str(json.loads(overrides)[_ERASED])
    return sha256(overrides.encode(errors="surrogatepass")).hexdigest()
