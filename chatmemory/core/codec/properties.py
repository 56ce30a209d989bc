"""The properties of one JSON object, read strictly as Jackson reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.spelling import write_json

T = TypeVar("T")

# The spellings of a boolean that Jackson accepts in a string.
_FLAGS = {"true": True, "True": True, "TRUE": True, "": None, "null": None}
_FLAGS |= {"false": False, "False": False, "FALSE": False}


class Properties:
    """A context manager that hands out the properties of a JSON object by name.

    Raises InvalidMessage at the end of the block if a property has not been taken: LangChain4j
    refuses unknown ones. `what` names the object in errors, behind its `type` if it has one.
    """

    def __init__(self, values: Any, what: str) -> None:
        if not isinstance(values, dict):
            raise InvalidMessage(f"a {what} must be a JSON object")
        self._values = dict(values)
        self._what = what
        self.type = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *details: object) -> None:
        if error is None and self._values:
            unknown = ", ".join(sorted(map(repr, self._values)))
            raise InvalidMessage(f"{self._name} has no property {unknown}")

    @property
    def _name(self) -> str:
        """The object with its article, such as `an AI message`."""
        name = f"{self.type} {self._what}".lstrip()
        return f"{'an' if name[0] in 'AEI' else 'a'} {name}"

    def take(self, name: str) -> Any:
        """Return a property as it is; None where it is missing."""
        return self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        """Return a string; other scalars become their text, as in Jackson."""
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return write_json(value)
        raise InvalidMessage(f"{name} must be a string")

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if isinstance(value, str):
            value = _FLAGS.get(value.strip(), value)
        if value is None or isinstance(value, int):
            return None if value is None else bool(value)
        raise InvalidMessage(f"{name} must be true or false")

    def attributes(self) -> dict[str, Any]:
        value = self.take("attributes")
        if value is not None and not isinstance(value, dict):
            raise InvalidMessage("attributes must be a JSON object")
        return value or {}

    def items(self, name: str, read: Callable[[Any], T]) -> list[T | None] | None:
        """Return the items of an array, each read; a null item stays None."""
        value = self.take(name)
        if value is not None and not isinstance(value, list):
            raise InvalidMessage(f"{name} must be a JSON array")
        return None if value is None else [None if v is None else read(v) for v in value]


def read_typed(value: Any, known: Mapping[str, Callable[[Properties], T]], what: str) -> T:
    """Return an object as the reader makes it that its `type` names in `known`.

    Raises InvalidMessage for a type that is missing, unknown or given twice.
    """
    if not isinstance(value, dict):
        raise InvalidMessage(f"a {what} must be a JSON object with a type")
    if getattr(value, "type_twice", False):
        raise InvalidMessage(f"a {what} names its type twice")
    given = Properties(value, what)
    kind = given.take("type")
    if kind is None:
        raise InvalidMessage(f"a {what} needs a type: one of {', '.join(known)}")
    if not isinstance(kind, str) or kind not in known:
        shown = repr(kind) if isinstance(kind, str | int | float) else "that is not a string"
        raise InvalidMessage(f"unknown {what} type {shown}: one of {', '.join(known)}")
    given.type = kind
    return known[kind](given)
