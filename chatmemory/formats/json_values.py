"""Checks of decoded JSON values, for the readers of formats."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.formats.format import Loss


def is_list_of(value: Any, *keys: str) -> bool:
    """Return whether a value is a list whose first item is an object with all these keys."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and all(key in value[0] for key in keys)
    )


def name_of(value: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these properties that can be a conversation's id: text or a number."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return None


def unread(where: str, value: Mapping[str, Any], read: Collection[str]) -> Iterator[Loss]:
    """Yield a loss for each property that is not in `read` and holds something."""
    for name in value:
        if name not in read and value[name] not in (None, "", [], {}):
            yield Loss(where, f"the property {name!r}")


def object_in(value: Any, what: str) -> dict[str, Any]:
    """Return the value, which must be a JSON object. Raises InvalidMessage."""
    if not isinstance(value, dict):
        raise InvalidMessage(what)
    return value


def text_in(value: Mapping[str, Any], name: str) -> str | None:
    """Return a property that must be a string or missing. Raises InvalidMessage."""
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found
    raise InvalidMessage(f"{name} must be a string")


def arguments_text(value: Any) -> str | None:
    """Return a call's arguments as JSON text; text stays as it is. Raises InvalidMessage."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError) as error:
        why = "the arguments are nested too deeply or hold too long a number"
        raise InvalidMessage(why) from error
