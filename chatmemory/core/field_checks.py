"""Checks of the fields of a message: what could not be read back is refused when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chatmemory.core.exceptions import InvalidMessage

_ITERABLE = (list, tuple, Iterable)  # to ask for an Iterable first takes four times as long


def check_texts(**values: object) -> None:
    """Raise InvalidMessage unless each value is a string or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(f"{name} must be a string, not {value!r}")


def check_kind(**values: tuple[object, type]) -> None:
    """Raise InvalidMessage unless each value is of its class or None."""
    for name, (value, kind) in values.items():
        if value is not None and not isinstance(value, kind):
            raise InvalidMessage(f"{name} takes {kind.__name__}, not {value!r}")


def check_iterable(**values: object) -> None:
    """Raise InvalidMessage unless each value is a list, anything like one, or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, _ITERABLE):
            raise InvalidMessage(f"{name} takes a list, not {value!r}")


def check_json(value: object) -> None:
    """Raise InvalidMessage for attributes or arguments that JSON cannot hold."""
    match value:
        case Mapping():
            for name, each in value.items():
                if not isinstance(name, str):
                    raise InvalidMessage(f"the name of a JSON property is a string, not {name!r}")
                check_json(each)
        case list() | tuple():
            for each in value:
                check_json(each)
        case None | str() | int() | float():
            return
        case _:
            raise InvalidMessage(f"JSON cannot hold {value!r}")
