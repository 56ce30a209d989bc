"""Options of policies: their types, and how callers write them.

Each option does nothing by default, so that a policy without options behaves as in LangChain4j.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Any, TypedDict

from chatmemory.core.exceptions import InvalidValue

WHOLE = Decimal(1)
DECIMALS = 9
SWITCHES = ("always_keep_system_message_first", "snap_to_user", "meters_only")
_SWITCH = {"true": True, "false": False}


class Oversized(StrEnum):
    """What happens to a message that the limit has no room for even alone.

    EVICT is LangChain4j's rule: it leaves at once, after all that could make room. With REJECT it
    is refused. With KEEP the newest message stays, with its call and the other results of that
    call.
    """

    EVICT = "evict"
    REJECT = "reject"
    KEEP = "keep"


class WindowOptions(TypedDict, total=False):
    """The options that memories take as keyword arguments; see `Policy`."""

    low_water: Decimal | float | str
    snap_to_user: bool
    oversized: Oversized | str
    meters_only: bool


class PolicyOptions(WindowOptions, total=False):
    """The options that policies take as keyword arguments."""

    estimator: str
    always_keep_system_message_first: bool


class TokenOptions(PolicyOptions, total=False):
    """The same of a token window, and what is derived from its estimator."""

    fixed_overhead: int


def check_limit(java_name: str, limit: object) -> int:
    """Return the limit if it is a positive integer.

    Raises InvalidValue, with LangChain4j's text if LangChain4j makes the same check.
    """
    if limit is None:
        raise InvalidValue(f"{java_name} must be greater than zero, but is: null")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise InvalidValue(f"{java_name} must be an integer, but is: {limit!r}")
    if limit <= 0:
        raise InvalidValue(f"{java_name} must be greater than zero, but is: {limit}")
    return limit


def exact_share(name: str, value: object) -> Decimal:
    """Return a number above 0 and up to 1 exactly as it is written: 0.29 is 29 hundredths.

    Raises InvalidValue.
    """
    try:
        share = Decimal(str(value)) if not isinstance(value, bool) else None
    except InvalidOperation:
        share = None
    if share is None or not share.is_finite() or not 0 < share <= 1:
        raise InvalidValue(f"{name} must be a number above 0 and at most 1, but is: {value!r:.60}")
    if share != share.quantize(Decimal(1).scaleb(-DECIMALS)):
        raise InvalidValue(f"{name} can have up to {DECIMALS} decimals, but is: {value!r:.60}")
    return share


def share_of(share: Decimal, limit: int) -> int:
    """Return a share of a limit, rounded down, without any rounding before."""
    return int(Fraction(share) * limit)


def least_whole(share: Decimal, part: int) -> int:
    """Return the smallest limit of which the share is at least `part`."""
    return ceil(part / Fraction(share))


def written_share(share: Decimal) -> str:
    """Return a share as text, without needless zeros: 0.6."""
    return format(share.normalize(), "f")


def option_value(name: str, type_: type, value: object) -> Any:
    """Return the value of an option that a caller gives in Python or JSON. Raises InvalidValue."""
    if type_ is Decimal:
        return exact_share(name, value)
    if issubclass(type_, StrEnum):
        if not isinstance(value, str) or value not in list(type_):
            raise InvalidValue(f"{name} must be one of {', '.join(type_)}, but is: {value!r:.60}")
        return type_(value)
    if not isinstance(value, type_):
        wanted = "true or false" if type_ is bool else f"a {type_.__name__}"
        raise InvalidValue(f"{name} must be {wanted}, but is: {value!r:.60}")
    return value


def option_from_text(name: str, type_: type, text: str) -> Any:
    """Return the value of an option that a person typed, such as `0.6` or `true`.

    Raises InvalidValue.
    """
    if type_ is bool:
        if text not in _SWITCH:
            raise InvalidValue(f"{name} must be true or false, but is: {text!r:.60}")
        return _SWITCH[text]
    if type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            raise InvalidValue(f"{name} must be a number, but is: {text!r:.60}") from None
    return option_value(name, type_, text)


def stored_value(value: object) -> Any:
    """Return the value of an option as JSON has it."""
    if isinstance(value, Decimal):
        return written_share(value)
    return str(value) if isinstance(value, StrEnum) else value
