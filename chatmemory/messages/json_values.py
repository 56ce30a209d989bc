"""Types for JSON values whose shape is not decided by this library: in messages, requests and
files.

Such a value can be anything, so the type checker accepts any use of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonValue = Any  # what `json.loads` returns
JsonMap = Mapping[str, JsonValue]  # an object that is only read
JsonDict = dict[str, JsonValue]
JsonList = list[JsonValue]

LibraryValue = Any  # an object of a provider's library, such as a response, or its JSON value
