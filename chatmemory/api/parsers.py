from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from chatmemory.core.codec import load_json
from chatmemory.core.exceptions import InvalidMessage


class StrictJSONParser(BaseParser):
    """JSON as the message codec reads it: no NaN, bounded numbers and depth, `type` not twice."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, context: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return load_json(stream.read().decode())
        except UnicodeDecodeError as error:
            raise ParseError(
                f"the body is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
        except InvalidMessage as error:
            raise ParseError(str(error)) from error
