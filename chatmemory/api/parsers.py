from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from chatmemory.conf import body_max
from chatmemory.core.codec import check_names, load_json
from chatmemory.core.exceptions import InvalidMessage


class StrictJSONParser(BaseParser):
    """Parses JSON as the message codec does: no NaN, bounded numbers and depth, no `type` twice.
    Outside messages no property is there twice.

    A body is not compressed, and has at most as many bytes as its view allows the method.
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
            value = load_json(_read(stream, meta, _limit(context)).decode())
            check_names(value, besides=("messages", "conversations"))
            return value
        except UnicodeDecodeError as error:
            raise ParseError(
                f"the body is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
        except InvalidMessage as error:
            raise ParseError(str(error)) from error


def _limit(context: Mapping[str, Any]) -> int | None:
    """The limit in bytes: the view's, if it has one for this method, but never above Django's."""
    limits = [body_max()]
    if "view" in context:
        limits.append(context["view"].body_max(context["request"].method))
    return min((limit for limit in limits if limit is not None), default=None)


def _read(stream: Any, meta: Mapping[str, Any], most: int | None) -> bytes:
    """Raises RequestDataTooBig, before reading anything if the declared length is too large."""
    if most is None:
        return bytes(stream.read())
    length = str(meta.get("CONTENT_LENGTH") or "")
    declared = int(length[:18]) if length.isascii() and length.isdigit() else 0
    content = b"" if declared > most else bytes(stream.read(most + 1))
    if declared > most or len(content) > most:
        raise RequestDataTooBig(f"the body is larger than {most:,} bytes")
    return content
