"""The form around the overview's checkboxes."""

from __future__ import annotations

from django import forms

from chatmemory.services.validation import ID_LENGTH, is_id

MAX_CONVERSATIONS = 500


class BulkForm(forms.Form):
    """An action on the chosen conversations. `next` is the query string of the overview to return
    to.
    """

    action = forms.ChoiceField(choices=[(name, name) for name in ("export", "label", "delete")])
    label_as_text = forms.CharField(required=False, max_length=ID_LENGTH)
    confirmed = forms.BooleanField(required=False)
    next = forms.CharField(required=False, max_length=2_000)

    @property
    def ids(self) -> list[str]:
        """The chosen ids in their order, without duplicates and without impossible ids."""
        chosen = self.data.getlist("id")  # type: ignore[attr-defined]
        unique = dict.fromkeys(chosen[:MAX_CONVERSATIONS])
        return [memory_id for memory_id in unique if is_id(memory_id)]

    @property
    def back(self) -> str:
        query: str = self.cleaned_data["next"]
        return query if query.startswith("?") else ""

    @property
    def label(self) -> tuple[str, str]:
        name, _, value = self.cleaned_data["label_as_text"].partition(":")
        return name.strip(), value.strip()

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not self.ids:
            raise forms.ValidationError("Choose at least one conversation.")
        if not self.errors and data["action"] == "label" and not self.label[0]:
            raise forms.ValidationError("Write the label as name:value.")
        return data
