"""The form for a default policy."""

from __future__ import annotations

from django import forms

from chatmemory import ChatMemoryError, Policy, policy_from_text
from chatmemory.services.validation import ID_LENGTH


class DefaultPolicyForm(forms.Form):
    """The beginning of the ids, which may be empty, and the policy as on the command line."""

    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    policy = forms.CharField(max_length=ID_LENGTH)

    def clean_policy(self) -> Policy:
        try:
            return policy_from_text(self.cleaned_data["policy"])
        except ChatMemoryError as error:
            raise forms.ValidationError(str(error)) from error
