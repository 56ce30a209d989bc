"""The forms of actions: on several conversations, and files."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from django import forms

from chatmemory import InvalidValue, Oversized, Policy, policy_kinds
from chatmemory.formats import readable_formats, writable_formats
from chatmemory.services.validation import ID_LENGTH, is_id
from inspector.conf import inspector_configuration
from inspector.forms.fields import STEP_MAX, option_field, policy_of, select
from inspector.middleware.bodies import upload_limit

ACTIONS = ("count", "export", "label", "delete")
MAX_CONVERSATIONS = 5_000
QUERY_LENGTH = 12_000  # several fields of 200 characters, each in up to 12 of a URL
OPTIONS = ("low_water", "oversized", "snap_to_user")


class BulkForm(forms.Form):
    """An action on the chosen conversations.

    They are the checked ones of the page and `also` those of other pages, as a JSON list, or with
    `every` all that match `next`, the query string of the overview to return to. `count` counts
    those that this overview does not show. `branches` are branches to be deleted with them, as a
    JSON list.
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
        """The chosen ids in their order, without duplicates and without impossible ids."""
        chosen = self.data.getlist("id")  # type: ignore[attr-defined]
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
        return _strings(self.cleaned_data["also"], "The choice on other pages cannot be read.")

    def clean_branches(self) -> list[str]:
        listed = _strings(self.cleaned_data["branches"], "The branches cannot be read.")
        return [memory_id for memory_id in listed if is_id(memory_id)]

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not data.get("every"):
            check_chosen(len(self.ids))
        if not self.errors and data["action"] == "label" and not self.label[0]:
            raise forms.ValidationError("Write the label as name:value.")
        return data


def check_chosen(chosen: int) -> None:
    """Raise ValidationError for no conversations, and for too many at once."""
    if not chosen:
        raise forms.ValidationError("Choose at least one conversation.")
    if chosen > MAX_CONVERSATIONS:
        raise forms.ValidationError(f"Choose at most {MAX_CONVERSATIONS:,} conversations at once.")


def _strings(text: str, problem: str) -> list[str]:
    """Return the strings of a JSON list. Raises ValidationError with the problem."""
    try:
        listed = json.loads(text or "[]")
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(problem) from error
    return [each for each in listed if isinstance(each, str)] if type(listed) is list else []


class CompactForm(forms.Form):
    """A summary, what it covers, and how many exact terms stand behind it.

    `first` and `last` are positions, from 1, in the window at a `step`: that does not change while
    somebody writes.
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
        """Return one of these numbers; None if it is not given, or cannot be read."""
        self.is_valid()
        number: int | None = getattr(self, "cleaned_data", {}).get(name)
        return number


class ExportForm(forms.Form):
    """The part of a conversation to export, its format, and a step (empty: the newest)."""

    format = forms.ChoiceField(
        choices=lambda: [(name, name) for name in writable_formats()], widget=select()
    )
    what = forms.ChoiceField(
        choices=[("history", "Everything said"), ("window", "The window")], widget=select()
    )
    at = forms.IntegerField(required=False, min_value=0, max_value=STEP_MAX)


class ImportForm(forms.Form):
    """A transcript file, and the policy of the conversations that are made from it."""

    file = forms.FileField()
    format = forms.ChoiceField(
        choices=lambda: [("auto", "Detect"), *((name, name) for name in readable_formats())],
        widget=select(),
    )
    kind = forms.ChoiceField(
        choices=lambda: [(name, kind.unit) for name, kind in policy_kinds().items()],
        widget=select(**{"aria-label": "Unit"}),
    )
    limit = forms.IntegerField(min_value=1, max_value=STEP_MAX, initial=20)
    begin = forms.CharField(required=False, max_length=100, strip=True)
    low_water = option_field("low_water", Decimal, "1")
    oversized = option_field("oversized", Oversized, Oversized.EVICT)
    snap_to_user = option_field("snap_to_user", bool, False)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        limit = upload_limit()
        if file.size is None or file.size > limit.size:
            raise forms.ValidationError(
                f"The file is larger than {limit}. "
                f"Import it with {inspector_configuration().MANAGE} import_transcripts."
            )
        return file

    def clean(self) -> dict[str, Any]:
        """Check that the options go together with the limit."""
        if not self.errors:
            try:
                _ = self.policy
            except InvalidValue as error:
                raise forms.ValidationError(str(error)) from error
        return self.cleaned_data

    @property
    def policy(self) -> Policy:
        """The policy of the form. Raises InvalidValue for options that do not go together."""
        data = self.cleaned_data
        return policy_of(data["kind"], data["limit"], {name: data[name] for name in OPTIONS})

    @property
    def id_prefix(self) -> str:
        """The start of the new ids; by default the file's name and a dash, as in the command."""
        name: str = self.cleaned_data["file"].name or "import"
        return self.cleaned_data["begin"] or f"{name.partition('.')[0]}-"
