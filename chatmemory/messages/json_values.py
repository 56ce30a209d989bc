"""Types for JSON values from outside (messages, requests, files), and for objects of providers'
libraries.

The values are `Any`, because their shape is not known. So the type checker accepts any use of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonValue = Any  # what `json.loads` returns
JsonMap = Mapping[str, JsonValue]  # an object that is only read
JsonDict = dict[str, JsonValue]
JsonList = list[JsonValue]

LibraryValue = Any  # an object of a provider's library, such as a response, or its JSON value
