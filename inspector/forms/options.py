"""Fields for the options of a policy, by their type and by their name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from django import forms

from chatmemory import Oversized
from inspector.forms.fields import select

LABELS = {
    "low_water": "When full, trim down to this share of the limit",
    "snap_to_user": "After a trim, begin with a user message",
    "oversized": "A message that is too big for the limit",
    "meters_only": "Only measure: evict and refuse nothing",
}
_OVERSIZED = {
    Oversized.EVICT: "leaves at once, after all others",
    Oversized.REJECT: "is refused",
    Oversized.KEEP: "stays while it is the newest",
}


def _share(**kwargs: Any) -> forms.Field:
    number = forms.NumberInput(
        attrs={"class": "sheet__number", "step": "any", "min": "0", "max": "1"}
    )
    return forms.CharField(max_length=12, widget=number, **kwargs)


def _oversized(**kwargs: Any) -> forms.Field:
    return forms.ChoiceField(choices=list(_OVERSIZED.items()), widget=select(), **kwargs)


def _number(kind: type[forms.Field]) -> Callable[..., forms.Field]:
    return partial(kind, widget=forms.NumberInput(attrs={"class": "sheet__number"}))


_FIELDS: Mapping[type, Callable[..., forms.Field]] = {
    bool: forms.BooleanField,
    int: _number(forms.IntegerField),
    float: _number(forms.FloatField),
    str: forms.CharField,
    Decimal: _share,
    Oversized: _oversized,
}


def has_field(type_: type) -> bool:
    """Return whether a form can hold an option of this type."""
    return type_ in _FIELDS


def option_field(name: str, type_: type, initial: object) -> forms.Field:
    """Return the field of an option; left empty, the option has its default."""
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    return _FIELDS[type_](required=False, label=label, initial=initial)
