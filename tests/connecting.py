"""Connections beside the one of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def connected(name: str) -> Iterator[None]:
    """Another connection, to the database of this name."""
    before = connections["default"]
    connections["default"] = other = connections.create_connection("default")
    other.settings_dict = {**other.settings_dict, "NAME": name}
    try:
        yield
    finally:
        other.close()
        connections["default"] = before
