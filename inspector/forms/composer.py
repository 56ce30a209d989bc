"""The form under a conversation: drafts to simulate or add, and another limit to try."""

from __future__ import annotations

from dataclasses import replace

from django import forms

from chatmemory import (
    ChatMessage,
    InvalidMessage,
    InvalidValue,
    Policy,
    messages_from_json,
    messages_to_json,
)
from chatmemory.formats.script import read_draft
from chatmemory.services.validation import ID_LENGTH, LIMIT_MAX
from inspector.forms.fields import STEP_MAX

ROLES = [
    ("user", "User"),
    ("ai", "AI"),
    ("result", "Tool result"),
    ("system", "System"),
    ("script", "Script"),
]
DRAFT_LENGTH = 1_000_000


class DraftForm(forms.Form):
    """The next message, or a script of several, after the `drafts` of the current simulation.

    `at` is the step that the simulation starts from (empty: the newest), `limit` another limit to
    try, and `new_id` the id under which to save the simulation as a new conversation.
    """

    role = forms.ChoiceField(choices=ROLES, initial="user")
    text = forms.CharField(required=False, strip=False, max_length=DRAFT_LENGTH)
    limit = forms.IntegerField(required=False, min_value=1, max_value=LIMIT_MAX)
    drafts = forms.CharField(required=False, strip=False, max_length=DRAFT_LENGTH)
    at = forms.IntegerField(required=False, min_value=0, max_value=STEP_MAX)
    new_id = forms.CharField(required=False, max_length=ID_LENGTH)

    def clean_drafts(self) -> list[ChatMessage]:
        """Reads the hidden field that the page itself wrote."""
        try:
            drafts = messages_from_json(self.cleaned_data["drafts"] or "[]")
        except InvalidMessage as error:
            raise forms.ValidationError(f"These drafts cannot be read: {error}") from error
        return [draft for draft in drafts if draft is not None]

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        text = data.get("text") or ""
        if not text.strip() and not data.get("limit") and not data.get("drafts"):
            raise forms.ValidationError("Write a message or choose another limit to simulate.")
        try:
            data["written"] = read_draft(str(data.get("role")), text) if text.strip() else []
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from error
        return data

    @property
    def messages(self) -> list[ChatMessage]:
        """The earlier drafts, followed by what was just written."""
        found: list[ChatMessage] = [*self.cleaned_data["drafts"], *self.cleaned_data["written"]]
        return found

    @property
    def step(self) -> int | None:
        at: int | None = self.cleaned_data["at"]
        return at

    def next(self) -> DraftForm:
        """Return an empty form for the next message, with these drafts, role, limit and step."""
        kept = {name: self.cleaned_data[name] for name in ("role", "limit", "at")}
        return DraftForm(initial=kept | {"drafts": messages_to_json(self.messages)})

    def policy(self, current: Policy | None) -> Policy | None:
        """Return the current policy with the requested limit, or None if it would not change."""
        limit = self.cleaned_data.get("limit")
        if current is None or limit in (None, current.limit):
            return None
        return replace(current, limit=limit)
