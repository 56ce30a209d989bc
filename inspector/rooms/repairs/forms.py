"""The form of a repair, and the JSON that a page about many repairs sends back."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.validation import ID_LENGTH, is_id
from chatmemory.lint import PROVIDERS
from inspector.forms.fields import STEP_MAX, select


def shown_versions(text: str, most: int) -> dict[str, int]:
    """Read the versions of conversations from the JSON that a page sends back. The keys are
    conversation IDs.

    Raises InvalidValue for anything else, and for more than `most` conversations.
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    is_read = type(found) is dict and all(
        is_id(memory_id) and type(version) is int for memory_id, version in found.items()
    )
    if not is_read:
        raise InvalidValue("what was shown cannot be read: open the page again")
    if len(found) > most:
        raise InvalidValue(f"at most {most:,} conversations are repaired at once")
    return dict(found)


def shown_policies(text: str, most: int) -> dict[str, tuple[str, int]]:
    """Read the policies of conversations from the JSON that a page sends back. A key is a
    conversation ID. Its value is the policy as text, and the conversation's version.

    Raises InvalidValue for anything else, and for more than `most` conversations.
    """
    try:
        found: Any = json.loads(text)
        read = {
            memory_id: (str(policy), int(version)) for memory_id, (policy, version) in found.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InvalidValue("what was shown cannot be read: open the page again") from None
    if len(read) > most or not all(map(is_id, read)):
        raise InvalidValue(f"at most {most:,} conversations are changed at once")
    return read


class RepairForm(forms.Form):
    """The form of a repair: for which provider, why, and for which version of the conversation."""

    provider = forms.ChoiceField(choices=lambda: list(PROVIDERS.items()), widget=select())
    reason = forms.CharField(required=False, max_length=ID_LENGTH)
    version = forms.IntegerField(min_value=0, max_value=STEP_MAX, widget=forms.HiddenInput)

    @property
    def arguments(self) -> dict[str, Any]:
        """The form's values as arguments of the service `repair`."""
        cleaned = self.cleaned_data
        named = {name: cleaned[name] for name in ("provider", "reason")}
        return named | {"expected_version": cleaned["version"]}
