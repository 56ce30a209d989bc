"""The examples of the OpenAPI document: one request and its response for each operation.

`examples.json` holds what the API really answered; tests/api/test_schema.py holds and writes it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from drf_spectacular.utils import OpenApiExample

FILE = resources.files("chatmemory.api") / "examples.json"


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return `request` and `response` (JSON) by operation id; null where there is no body."""
    loaded: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return loaded


def examples_of(operation: str, status: int) -> list[OpenApiExample]:
    """Return the examples of an operation, whose success has this status."""
    example = recorded().get(operation, {})
    found = []
    if example.get("request") is not None:
        found.append(OpenApiExample("A request", example["request"], request_only=True))
    if example.get("response") is not None:
        found.append(
            OpenApiExample(
                "Its response",
                example["response"],
                response_only=True,
                status_codes=[str(status)],
            )
        )
    return found
