"""The form for a repair. Also reads the JSON in which other forms send back the versions or
policies that a page has shown.
"""

from __future__ import annotations

import json

from django import forms

from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.validation import ID_LENGTH, is_id
from chatmemory.lint import PROVIDERS
from chatmemory.messages.json_values import JsonDict, JsonValue
from inspector.forms.fields import STEP_MAX, select

_UNREADABLE = (
    "the list of shown conversations in this form cannot be read: reload the page, and try again"
)


def shown_versions(text: str, most: int) -> dict[str, int]:
    """Return a number for each conversation that a page has shown, by conversation ID. `text` is
    the JSON that the page sends back, such as `{"order-7": 12}`.

    The form field `versions` has versions of conversations. The form field `steps` has numbers of
    steps.

    Raises InvalidValue for other JSON, and for more than `most` conversations.
    """
    try:
        found: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    is_read = type(found) is dict and all(
        is_id(memory_id) and type(version) is int for memory_id, version in found.items()
    )
    if not is_read:
        raise InvalidValue(_UNREADABLE)
    if len(found) > most:
        raise InvalidValue(
            f"one request can repair at most {most:,} conversations, but names {len(found):,}: "
            "choose fewer"
        )
    return dict(found)


def shown_policies(text: str, most: int) -> dict[str, tuple[str, int]]:
    """Return the policies that a page has shown, by conversation ID. Each is a pair: the policy as
    text, and the version of the conversation. `text` is the JSON that the page sends back, such as
    `{"order-7": ["message_window:20", 12]}`.

    Raises InvalidValue for other JSON, and for more than `most` conversations.
    """
    try:
        found: JsonValue = json.loads(text)
        read = {
            memory_id: (str(policy), int(version)) for memory_id, (policy, version) in found.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InvalidValue(_UNREADABLE) from None
    if not all(map(is_id, read)):
        raise InvalidValue(_UNREADABLE)
    if len(read) > most:
        raise InvalidValue(
            f"one request can change at most {most:,} conversations, but names {len(read):,}: "
            "choose fewer"
        )
    return read


class RepairForm(forms.Form):
    """The form for a repair: the provider, the reason, and the version of the conversation that the
    page has shown.
    """

    provider = forms.ChoiceField(choices=lambda: list(PROVIDERS.items()), widget=select())
    reason = forms.CharField(required=False, max_length=ID_LENGTH)
    version = forms.IntegerField(min_value=0, max_value=STEP_MAX, widget=forms.HiddenInput)

    @property
    def arguments(self) -> JsonDict:
        """The form's values as arguments of the service `repair`."""
        cleaned = self.cleaned_data
        named = {name: cleaned[name] for name in ("provider", "reason")}
        return named | {"expected_version": cleaned["version"]}
