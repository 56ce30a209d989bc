from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from chatmemory.core.codec import check_names, load_json
from chatmemory.core.exceptions import InvalidMessage


class StrictJSONParser(BaseParser):
    """Parses JSON as the message codec does: no NaN, bounded numbers and depth, no `type` twice.
    Outside messages no property is there twice.

    A body is not compressed.
    """

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, context: Mapping[str, Any] | None = None
    ) -> Any:
        context = context or {}
        meta = context["request"].META if "request" in context else {}
        if (encoding := meta.get("HTTP_CONTENT_ENCODING", "identity")) != "identity":
            raise UnsupportedMediaType(
                encoding, f"the body must not be encoded as {encoding!r}: send plain JSON"
            )
        try:
            value = load_json(stream.read().decode())
            check_names(value, besides=("messages", "conversations"))
            return value
        except UnicodeDecodeError as error:
            raise ParseError(
                f"the body is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
        except InvalidMessage as error:
            raise ParseError(str(error)) from error
