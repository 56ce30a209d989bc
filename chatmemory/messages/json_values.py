"""The types of JSON values whose shape others decide: of messages, of requests, of files.

Nothing is known of such a value before it has been looked at, so the type checker takes any use of
it. Values whose shape is ours have types of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonValue = Any  # what `json.loads` returns
JsonMap = Mapping[str, JsonValue]  # an object that is only read
JsonDict = dict[str, JsonValue]
JsonList = list[JsonValue]

LibraryValue = Any  # an object of a provider's library, such as a response, or its JSON value
