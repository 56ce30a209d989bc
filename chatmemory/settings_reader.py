"""Reads settings that a project gives as a dictionary, and checks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, NamedTuple, TypeGuard, TypeVar

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import SystemCheckError

T = TypeVar("T")


class AppMissing(ImproperlyConfigured, SystemCheckError):
    """Raised if a project includes URLs, but has not installed their Django application. `manage.py
    check` prints the text of this exception.
    """


def require_apps(addresses: str, *names: str) -> None:
    """Raise AppMissing unless these Django applications are installed. `addresses` is the URL
    module that needs them.
    """
    for name in names:
        if not apps.is_installed(name):
            raise AppMissing(
                f'include("{addresses}") needs {name!r} in INSTALLED_APPS: see docs/mounting.md'
            )


class Expected(NamedTuple):
    """What the value of a setting must be. `is_right` tests a value, and `words` say in errors what
    is valid.

    With `is_secret`, errors do not show the value.
    """

    is_right: Callable[[object], bool]
    words: str
    is_secret: bool = False


def setting(
    default: object, expected: Expected
) -> Any:  # it stands for a value of the field's type
    """Return a dataclass field for one setting, with its default and its valid values. The function
    `read` sets the field's value.
    """
    return field(default=default, metadata={"expected": expected})


def read(name: str, kind: type[T], example: str) -> T:
    """Return the settings dictionary with this name, as a dataclass of `kind`. The fields of `kind`
    say which values are valid. `example` is shown in errors.

    Raises ImproperlyConfigured for unknown settings, and for wrong values.
    """
    values: object = getattr(settings, name, {})
    if not isinstance(values, Mapping):
        raise ImproperlyConfigured(f"{name} must be a dictionary such as {example}")
    expected = {each.name: each.metadata["expected"] for each in fields(kind)}  # type: ignore[arg-type]  # a class of the type is a dataclass
    if unknown := set(values) - expected.keys():
        raise ImproperlyConfigured(f"{name} has no setting {', '.join(sorted(map(str, unknown)))}")
    for key, (is_right, words, is_secret) in expected.items():
        if key in values and not is_right(values[key]):
            shown = "" if is_secret else f", but is: {values[key]!r}"
            raise ImproperlyConfigured(f'{name}["{key}"] must be {words}{shown}')
    return kind(**values)


def is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def whole_number(minimum: int, maximum: int) -> Expected:
    """Return the requirement that a setting is a whole number from `minimum` to `maximum`."""
    return Expected(
        lambda value: type(value) is int and minimum <= value <= maximum,
        f"a whole number from {minimum} to {maximum:,}",
    )


BYTES = whole_number(1, 2**30)
