"""The form with which people choose the providers in use."""

from __future__ import annotations

from typing import Any

from django import forms

from chatmemory.ledger.validation import ID_LENGTH
from chatmemory.lint import PROVIDERS
from inspector.rooms.doctor.using import MODEL


class ProvidersForm(forms.Form):
    """Asks for the providers and models in use, for conversations whose IDs begin with a prefix."""

    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    providers = forms.MultipleChoiceField(
        required=False,
        choices=lambda: list(PROVIDERS.items()),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # passed on
        super().__init__(*args, **kwargs)
        for name in PROVIDERS:
            self.fields[f"models_{name}"] = forms.CharField(required=False, max_length=20 * MODEL)

    @property
    def chosen(self) -> list[str]:
        """The chosen providers and models as texts for the function `in_use`, such as `openai` or
        `openai:MODEL`. In the field of a provider's models, people separate models by commas or
        blanks.
        """
        cleaned = self.cleaned_data
        found = []
        for name in cleaned["providers"]:
            models = cleaned[f"models_{name}"].replace(",", " ").split()
            found += [f"{name}:{model}" for model in models] or [name]
        return found
