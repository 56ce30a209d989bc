"""Reading the environment: a value that is not understood stops the start, by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured

DATABASE_URL = re.compile(r"(sqlite|postgres|postgresql)://.+")
RATE = re.compile(r"[1-9]\d{0,8}/(second|minute|hour|day)")


def flag(environment: Mapping[str, str], name: str) -> bool:
    """1 is yes; 0, empty and unset are no; anything else might be meant as either."""
    value = environment.get(name, "")
    if value not in ("1", "0", ""):
        raise ImproperlyConfigured(f"{name} is 1 or 0, but is: {value!r}")
    return value == "1"


def choice(environment: Mapping[str, str], name: str, *values: str) -> str:
    """One of these; the first where nothing is said."""
    value = environment.get(name) or values[0]
    if value not in values:
        raise ImproperlyConfigured(f"{name} is {' or '.join(values)}, but is: {value!r}")
    return value


def seconds(environment: Mapping[str, str], name: str, default: int) -> int:
    """A whole number of seconds."""
    value = environment.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ImproperlyConfigured(f"{name} is a number of seconds, but is: {value!r}")
    return int(value)


def rate(environment: Mapping[str, str], name: str, default: str) -> str:
    """So many requests in a time, as REST framework reads it."""
    value = environment.get(name) or default
    if not RATE.fullmatch(value):
        raise ImproperlyConfigured(f"{name} is a rate such as 100/second, but is: {value!r}")
    return value


def database_url(environment: Mapping[str, str], name: str, default: str) -> str:
    """Where the database is. A password in it is not repeated."""
    value = environment.get(name) or default
    if not DATABASE_URL.fullmatch(value):
        raise ImproperlyConfigured(f"{name} must begin with sqlite:/// or postgresql://")
    return value
