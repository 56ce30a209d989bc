"""Form fields for the options of policies, and functions that read and clean the texts that people
type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import Any

from django import forms

from chatmemory import Oversized, Policy, policy_from_dict, policy_kinds

# The largest whole number that JavaScript and JSON clients read exactly.
STEP_MAX = 2**53
LABELS = {
    "low_water": "When memory is full, trim to this share of the limit",
    "snap_to_user": "After a trim, start memory at a user message",
    "oversized": "An oversized message",
    "index_terms": "Exact terms of evicted messages in an index (0: off, at most 200)",
    "clear_tool_results": "When full, first clear tool results, except the newest N (0: off)",
    "free_system": "The limit does not count the system message",
    "auto_recover_orphaned_tool_messages": "Leave out tool calls with missing tool results",
    "meters_only": "Only measure: no message leaves or is refused",
    "always_keep_system_message_first": "Keep the system message first in memory",
}
_OVERSIZED = {
    Oversized.EVICT: "leaves memory after all other messages",
    Oversized.REJECT: "is refused",
    Oversized.KEEP: "stays while it is the newest",
}
SEARCH_LENGTH = 200


def select(**attributes: str) -> forms.Select:
    """Return a drop-down list in the inspector's style, with these HTML attributes."""
    return forms.Select(attrs={"class": "select", **attributes})


def first_problem(form: forms.Form) -> str:
    """Return the text of a form's first error, or "" if it has none."""
    return next((str(error) for errors in form.errors.values() for error in errors), "")


def _share(**kwargs: Any) -> forms.Field:  # each has a type of its own
    number = forms.NumberInput(
        attrs={"class": "sheet__number", "step": "any", "min": "0", "max": "1"}
    )
    return forms.CharField(max_length=12, widget=number, **kwargs)


def _oversized(**kwargs: Any) -> forms.Field:  # each has a type of its own
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
    """Return whether a form can have a field for a policy option of this type."""
    return type_ in _FIELDS


def option_field(name: str, type_: type, initial: object) -> forms.Field:
    """Return the form field for a policy option of this type. A field that is left empty gives the
    option its default.
    """
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    return _FIELDS[type_](required=False, label=label, initial=initial)


def policy_of(kind: str, limit: int, options: Mapping[str, object]) -> Policy:
    """Return a policy with this kind, limit and options. An option whose value is None or "" gets
    its default.

    Raises InvalidValue for options that exclude each other, and UnknownEstimator.
    """
    chosen = {name: value for name, value in options.items() if value not in (None, "")}
    limit_name = policy_kinds()[kind].limit_name
    return policy_from_dict(chosen | {"kind": kind, limit_name: limit})


def settings_digest(policy: Policy | None, labels: Mapping[str, str] | None = None) -> str:
    """Return a SHA-256 value of a conversation's policy and labels.

    A page puts this value into its form. When somebody sends the form, the site computes the value
    again. If the values differ, somebody changed the policy or labels in the meantime.
    """
    stored = policy.to_dict() if policy else {}
    settings = json.dumps([stored, labels], sort_keys=True, default=str)
    return sha256(settings.encode()).hexdigest()


def searchable(text: str) -> str:
    """Return a search text, stripped and cut to 200 characters. NUL and lone surrogates are
    removed: no stored text contains these characters.
    """
    return text.replace("\0", "").encode(errors="ignore").decode().strip()[:SEARCH_LENGTH]


def number_in_text(text: str, digits: int) -> int | None:
    """Return the number that a text consists of. Return None for any other text, and for a number
    with more than `digits` digits.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if is_number else None
