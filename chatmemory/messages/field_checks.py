"""Checks the fields of a message when the message is created. Values of a wrong type raise
InvalidMessage, and so do values that JSON cannot express, such as NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.json_values import JsonMap

DEPTH_MAX = 200  # levels of objects and arrays
DIGITS_MAX = 4_300  # digits of an integer: Python reads and writes no longer ones
_TOO_LONG = 10**DIGITS_MAX

_SHOWN = 80  # characters

_ITERABLE = (list, tuple, Iterable)  # checking for an Iterable first takes four times as long
_MAPPING = (dict, Mapping)


def brief(value: object) -> str:
    """Return the `repr` of a value for an error message, shortened if it is long."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def check_texts(**values: object) -> None:
    """Raise InvalidMessage unless each value is a string or None. The error names the keyword of
    the wrong value.
    """
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(f"{name} must be a string, not {value!r}")


def check_kind(**values: tuple[object, type]) -> None:
    """Raise InvalidMessage unless each value is None or an instance of the required class. Each
    keyword takes a pair, the value and the required class, such as `name=(value, str)`.
    """
    for name, (value, kind) in values.items():
        if value is not None and not isinstance(value, kind):
            raise InvalidMessage(f"{name} takes {kind.__name__}, not {value!r}")


def check_iterable(**values: object) -> None:
    """Raise InvalidMessage unless each value is None or an iterable such as a list. The error names
    the keyword of the wrong value.
    """
    for name, value in values.items():
        if value is not None and not isinstance(value, _ITERABLE):
            raise InvalidMessage(f"{name} takes a list, not {value!r}")


def check_mapping(**values: object) -> None:
    """Raise InvalidMessage unless each value is None or a mapping such as a dict. The error names
    the keyword of the wrong value.
    """
    for name, value in values.items():
        if value is not None and not isinstance(value, _MAPPING):
            raise InvalidMessage(f"{name} must be a dictionary, not {value!r}")


def check_json(values: JsonMap) -> None:
    """Raise InvalidMessage for attributes or arguments that JSON cannot express, such as a list
    that contains itself.
    """
    levels: list[Iterator[object]] = [iter((values,))]
    while levels:
        for value in levels[-1]:
            inner = _inner(value)
            if inner is None:
                continue
            if len(levels) > DEPTH_MAX:
                raise InvalidMessage(f"the JSON is nested too deeply: at most {DEPTH_MAX} levels")
            levels.append(inner)
            break
        else:
            levels.pop()


def _inner(value: object) -> Iterator[object] | None:
    """Return the values in an object or array, in reverse order; None for any other JSON value."""
    match value:
        case None | str():
            return None
        case int():
            if abs(value) >= _TOO_LONG:
                raise InvalidMessage("a number has too many digits")
            return None
        case float():
            if not isfinite(value):
                raise InvalidMessage(f"JSON has no NaN and no Infinity, but is given {value!r}")
            return None
        case Mapping():
            for name in value:
                if not isinstance(name, str):
                    raise InvalidMessage(f"the name of a JSON property is a string, not {name!r}")
            return iter([*value.values()][::-1])
        case list() | tuple():
            return iter(value[::-1])
    raise InvalidMessage(f"JSON cannot hold {value!r}")
