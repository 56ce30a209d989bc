"""Forms of actions on one conversation or on several."""

from __future__ import annotations

import json

from django import forms

from chatmemory.ledger.validation import ID_LENGTH, is_id
from inspector.forms.fields import STEP_MAX, select

ACTIONS = ("count", "export", "label", "delete")
MAX_CONVERSATIONS = 5_000
QUERY_LENGTH = 12_000  # several fields of 200 characters, each of which takes up to 12 in a URL


class BulkForm(forms.Form):
    """The form of an action on several conversations, which people choose on the overview.

    - The chosen conversations are the checked rows of the page, and those in `also`, a JSON list of
      ids from other pages.
    - If `every` is set, all conversations of the filtered list are chosen instead.
    - `next` is the query string of the filtered list. The site returns to this list after the
      action.
    - `branches` is a JSON list of the ids of branches to delete with the chosen conversations.
    - The action `count` changes nothing. The answer is how many of the chosen conversations are not
      in the filtered list.
    """

    action = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
    also = forms.CharField(required=False)
    branches = forms.CharField(required=False)
    every = forms.BooleanField(required=False)
    label_as_text = forms.CharField(required=False, max_length=ID_LENGTH)
    confirmed = forms.BooleanField(required=False)
    next = forms.CharField(required=False, max_length=QUERY_LENGTH)

    @property
    def ids(self) -> list[str]:
        """The ids of the checked rows and the ids in `also`, without repetition. Texts that cannot
        be an id are left out. The field `every` is ignored.
        """
        chosen = self.data.getlist("id")  # type: ignore[attr-defined]  # a form's data is a QueryDict here
        unique = dict.fromkeys([*chosen, *self.cleaned_data.get("also", ())])
        return [memory_id for memory_id in unique if is_id(memory_id)]

    @property
    def back(self) -> str:
        query: str = self.cleaned_data.get("next", "")
        return query if query.startswith("?") else ""

    @property
    def label(self) -> tuple[str, str]:
        name, _, value = self.cleaned_data["label_as_text"].partition(":")
        return name.strip(), value.strip()

    def clean_also(self) -> list[str]:
        return _strings(
            self.cleaned_data["also"],
            "The selection from other pages cannot be read: select the conversations again.",
        )

    def clean_branches(self) -> list[str]:
        listed = _strings(
            self.cleaned_data["branches"],
            "The selected branches cannot be read: reload the page, and select them again.",
        )
        return [memory_id for memory_id in listed if is_id(memory_id)]

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not data.get("every"):
            check_chosen(len(self.ids))
        if not self.errors and data["action"] == "label" and not self.label[0]:
            raise forms.ValidationError("Write the label as name:value.")
        return data


def check_chosen(chosen: int) -> None:
    """Raise ValidationError if no conversation or too many conversations are chosen. `chosen` is
    the number of chosen conversations.
    """
    if not chosen:
        raise forms.ValidationError("Choose at least one conversation.")
    if chosen > MAX_CONVERSATIONS:
        raise forms.ValidationError(f"Choose at most {MAX_CONVERSATIONS:,} conversations at once.")


def _strings(text: str, problem: str) -> list[str]:
    """Return the strings of a JSON list. Raises ValidationError with the text `problem` for any
    other text.
    """
    try:
        listed = json.loads(text or "[]")
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(problem) from error
    return [each for each in listed if isinstance(each, str)] if type(listed) is list else []


class CompactForm(forms.Form):
    """The form of a compaction: a summary, the messages that the summary replaces, and the number
    of exact terms to append.

    `first` and `last` are the positions of the first and the last replaced message in the window
    after `step`. They count from 1. Messages that arrive after this step do not change the choice.
    """

    summary = forms.CharField(
        max_length=100_000,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        error_messages={"required": "Write or paste a summary first."},
    )
    step = forms.IntegerField(min_value=0, max_value=STEP_MAX)
    first = forms.IntegerField(min_value=1, max_value=STEP_MAX)
    last = forms.IntegerField(min_value=1, max_value=STEP_MAX)
    append_terms = forms.TypedChoiceField(
        choices=[(n, f"{n} terms" if n else "none") for n in (0, 10, 25, 50)],
        coerce=int,
        initial=0,
        widget=select(),
    )

    def chosen(self, name: str) -> int | None:
        """Return the number in a field, or None if it is missing or not a number."""
        self.is_valid()
        number: int | None = getattr(self, "cleaned_data", {}).get(name)
        return number
