"""Functions that read properties of JSON values from files.

A property may be missing, or have an unexpected type. A function then ignores the property, unless
its docstring says that it raises InvalidMessage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import Loss
from chatmemory.formats.packed import is_list
from chatmemory.formats.words import is_misplaced
from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue, LibraryValue


def unknown(what: str, value: JsonValue, known: Iterable[str]) -> InvalidMessage:
    """Return the error for a value, such as a role, that is none of the `known` values."""
    return InvalidMessage(f"unknown {what} {value!r}: use one of {', '.join(known)}")


def object_in(value: JsonValue, what: str) -> JsonDict:
    """Return the value if it is a JSON object. Else raises InvalidMessage with the text `what`."""
    if not isinstance(value, dict):
        raise InvalidMessage(what)
    return value


def objects_in(value: JsonMap, name: str, each: str = "part") -> list[JsonDict]:
    """Return the property `name`, a list of objects. Raises InvalidMessage for anything else.

    `each` is the word for an item of the list in the error, such as "part".
    """
    found = value.get(name)
    if not isinstance(found, list):
        raise InvalidMessage(f"{name} must be a list")
    return [object_in(item, f"a {each} must be an object") for item in found]


def list_in(value: JsonValue, name: str) -> JsonList:
    """Return the property `name` of a value if the property is a list, else an empty list."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def dicts_in(value: JsonValue, name: str) -> list[JsonDict]:
    """Return the objects in the list under a name; [] if there is no list. Values that are not
    objects are left out.
    """
    return [each for each in list_in(value, name) if isinstance(each, dict)]


def dict_in(value: JsonValue, name: str) -> JsonDict:
    """Return the property `name` of a value if the property is an object, else an empty object."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, dict) else {}


def text_in(value: JsonMap, *names: str) -> str | None:
    """Return the first of the properties `names` that is a text and not empty. If all are empty or
    missing, return the last property: "" or None.

    The properties are read in the order of `names`. Raises InvalidMessage at a property that is
    neither a string nor null.
    """
    found: str | None = None
    for name in names:
        found = value.get(name)
        if found is not None and not isinstance(found, str):
            raise InvalidMessage(f"{name} must be a string")
        if found:
            break
    return found


def type_in(part: JsonValue) -> str:
    """Return the type of a part, or "" if it has none."""
    type = part.get("type") if isinstance(part, dict) else None
    return type if isinstance(type, str) else ""


def first_in(value: JsonMap, *names: str) -> JsonValue:
    """Return the value of the first of these properties that is present, even if the value is null.
    None if all are missing.
    """
    return next((value[name] for name in names if name in value), None)


def name_of(value: JsonMap, *keys: str) -> str | None:
    """Return, as text, the first of the properties `keys` that can be a conversation's id: a text
    that is not empty, or a whole number. None if there is no such property.
    """
    for key in keys:
        found = value.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return None


def is_list_of(value: JsonValue, *keys: str) -> bool:
    """Return whether a value is a list whose first item is an object with all these keys."""
    return (
        is_list(value)
        and bool(value)
        and isinstance(value[0], dict)
        and all(key in value[0] for key in keys)
    )


def unread(
    where: str, value: JsonMap, read: Collection[str], turn: int | None = None
) -> Iterator[Loss]:
    """Yield a loss for each property of `value` that is not in `read` and is not empty.

    A property in `read` is a loss, too, if it should be a text or a number, such as "id", but is an
    object or a list with objects.

    `where` is the position of the losses, and `turn` is the index of `value` in the list of
    messages.
    """
    for name in value:
        is_read = name in read and not is_misplaced(name, value[name])
        if not is_read and value[name] not in (None, "", [], {}):
            yield Loss(where, f"the property {name!r}", turn)


# The properties that hold the text of a text part, in one format or another.
_TEXTS = ("text", "content", "value")


def part_text(part: JsonMap, name: str = "text") -> str:
    """Return the text of a text part; "" if the part is empty. If there is no text under `name`,
    the text is read from `text`, `content` or `value`, which other formats use.

    Raises InvalidMessage if the part has other content than text.
    """
    if isinstance(part.get(name), str):
        return str(part[name])
    for other in _TEXTS:
        found = part.get(other)
        found = found.get("value") if isinstance(found, dict) else found
        if isinstance(found, str):
            return found
    if part.get(name) is not None:
        raise InvalidMessage(f"{name} must be a string")
    others = [each for each in part if each not in ("type", "block_type", "kind") and part[each]]
    if others:
        names = ", ".join(map(repr, others[:5]))
        raise InvalidMessage(f"a text part needs its text under {name!r}, but has {names}")
    return ""


def json_object(text: str) -> JsonDict | None:
    """Return the JSON object in a text, or None if the text has anything else."""
    value = decoded(text)
    return value if isinstance(value, dict) else None


def arguments_text(value: JsonValue) -> str | None:
    """Return a tool call's arguments as JSON text. A text and None are returned unchanged.

    Raises InvalidMessage if the arguments are nested too deeply, or have a number that is too long.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError) as error:
        why = "the arguments are nested too deeply or hold too long a number"
        raise InvalidMessage(why) from error


def plain_values(
    value: LibraryValue, dump: Callable[[LibraryValue], JsonValue] | None = None
) -> JsonValue:
    """Return objects of a library as JSON values. The objects may be in lists and dictionaries.

    `dump` turns an object into JSON. Without `dump`, objects of Pydantic are dumped with the fields
    that were set.
    """
    if isinstance(value, list | tuple):
        return [plain_values(each, dump) for each in value]
    if isinstance(value, Mapping):
        return {name: plain_values(each, dump) for name, each in value.items()}
    if not hasattr(value, "model_dump"):
        return value
    return dump(value) if dump else value.model_dump(mode="json", exclude_unset=True)
