"""Types for JSON values whose shape is decided elsewhere: in messages, requests and files.

Nothing is known about such a value before it is examined, so the type checker accepts any use.
Values whose shape this library decides have types of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonValue = Any  # what `json.loads` returns
JsonMap = Mapping[str, JsonValue]  # an object that is only read
JsonDict = dict[str, JsonValue]
JsonList = list[JsonValue]

LibraryValue = Any  # an object of a provider's library, such as a response, or its JSON value
