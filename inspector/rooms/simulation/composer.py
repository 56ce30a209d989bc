"""The form below a conversation ("composer"): for draft messages to simulate or add, and for
another limit to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

from chatmemory import ChatMessage, InvalidValue, Policy
from chatmemory.formats.script import read_draft, unknown_role, write_draft
from chatmemory.ledger.validation import ID_LENGTH, LIMIT_MAX, check_added, check_id
from inspector.forms.fields import STEP_MAX, searchable
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.rooms import parameters

ROLES = [
    ("user", "User"),
    ("ai", "AI"),
    ("result", "Tool result"),
    ("system", "System"),
    ("script", "Script"),
]
DRAFT_LENGTH = 1_000_000
KEY_LENGTH = 16
ASKS_NOTHING = "asks_nothing"


@dataclass(frozen=True)
class Entered:
    """The values in the fields of the composer.

    `limit` is the limit to try, and `shown` the limit that the page has shown. `draft` is the
    number of the draft that is edited; None for a new draft.
    """

    role: str = "user"
    text: str = ""
    limit: str | int | None = None
    shown: str | int | None = None
    draft: str | int | None = None


@dataclass(frozen=True)
class Composer:
    """Presents the form for draft messages and for another limit to try.

    - `stored_limit`: the limit of the conversation's policy; None without a policy.
    - `unit`: the unit of this limit.
    - `is_live`: whether the page follows the newest step.
    - `is_simulation`: whether the page shows a simulation.
    - `problem`: an error to show, or "".
    - `entered`: the values in the fields.

    The HTML is cached only if the property `has_words` is False, so that no words of a message stay
    in the cache.
    """

    roles: ClassVar = ROLES

    memory_id: str
    stored_limit: int | None
    unit: str
    is_live: bool
    is_simulation: bool = False
    problem: str = ""
    entered: Entered = Entered()

    @property
    def has_words(self) -> bool:
        entered = self.entered
        words = entered.text or self.problem or entered.limit or entered.shown
        return bool(words or self.is_simulation)


class DraftForm(forms.Form):
    """The form that changes the drafts and the limit of a trial. With the role "script", `text` is
    a script: a line such as `user: hello` for each message. With another role, `text` is one
    message.

    - `trial`: the key of the stored trial, or "".
    - `draft`: the number of the draft that the text replaces.
    - `removed`: the number of a draft to remove.
    - `limit`: a limit to try. Ignored if it equals `shown`, the limit that the page has shown.
    - `new_id`: the ID of the new conversation for a branch.
    - `at`: the step from which to simulate, or to start a branch; empty for the newest step.
    - `msg`: the number of the selected message.
    - `live`: whether the page follows the newest step. Only the form for a branch sends this field,
      together with `at`.
    """

    role = forms.ChoiceField(choices=ROLES, initial="user", required=False)
    text = forms.CharField(required=False, strip=False, max_length=DRAFT_LENGTH)
    limit = forms.IntegerField(required=False, min_value=1, max_value=LIMIT_MAX)
    shown = forms.IntegerField(required=False, min_value=1, max_value=LIMIT_MAX)
    trial = forms.CharField(required=False, max_length=KEY_LENGTH)
    draft = forms.IntegerField(required=False, min_value=1)
    removed = forms.IntegerField(required=False, min_value=1)
    new_id = forms.CharField(required=False, max_length=ID_LENGTH)
    at = forms.IntegerField(required=False, min_value=0, max_value=STEP_MAX)
    msg = forms.IntegerField(required=False, min_value=1, max_value=STEP_MAX)
    live = forms.BooleanField(required=False)

    @classmethod
    def of(cls, trial: WhatIf | None, draft: int | None = None) -> DraftForm:
        """Return the form to show for a trial. With the number of a `draft`, the form has the role
        and the text of this draft. Otherwise, the text is empty, and the role is that of the
        trial's last draft.
        """
        drafts = trial.drafts if trial else ()
        if not draft or draft > len(drafts):
            return cls(initial={"role": write_draft(drafts[-1])[0] if drafts else "user"})
        role, text = write_draft(drafts[draft - 1])
        return cls(initial={"role": role, "text": text, "draft": draft})

    def clean_text(self) -> str:
        r"""Return the text with `\n` as line breaks. Browsers send `\r\n`."""
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        text = data.get("text") or ""
        limit = data.get("limit") if self.changes_limit else None
        asks = limit or data.get("trial") or data.get("removed")
        if not text.strip() and not asks:
            raise forms.ValidationError(
                "Write a message or choose another limit to simulate.", code=ASKS_NOTHING
            )
        if not text.strip() and data.get("draft") and not data.get("removed"):
            raise forms.ValidationError("Write the text of the draft, or remove the draft.")
        try:
            data["written"] = read_draft(data.get("role") or "user", text) if text.strip() else []
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from error
        return data

    @property
    def unknown_role(self) -> tuple[int, str] | None:
        """The number (from 1) of the first line with an unknown role in a script, and this role.
        None if all roles are known.
        """
        data = self.cleaned_data
        return unknown_role(data.get("text", "")) if data.get("role") == "script" else None

    @property
    def step(self) -> int | None:
        at: int | None = self.cleaned_data.get("at")
        return at

    @property
    def page_step(self) -> int | None:
        """The step of the page to return to; None for the page that follows the newest step."""
        return None if self.cleaned_data.get("live") else self.step

    @property
    def kept(self) -> dict[str, str]:
        """The URL parameters of other rooms, which the page keeps after the form was sent."""
        names = parameters().keys() & self.data.keys() - self.fields.keys()
        return {name: searchable(self.data[name]) for name in sorted(names)}

    @property
    def asks_nothing(self) -> bool:
        """Whether the form is invalid only because it asks for nothing. Such a form has no text, no
        changed limit, no trial, and no draft to remove.
        """
        is_only = list(self.errors) == [NON_FIELD_ERRORS]
        return is_only and self.has_error(NON_FIELD_ERRORS, ASKS_NOTHING)

    @property
    def changes_limit(self) -> bool:
        """Whether the limit in the form differs from the limit that the page showed."""
        limit = self.cleaned_data.get("limit")
        return "limit" in self.data and (not limit or limit != self.cleaned_data.get("shown"))

    def first_written(self, revised: WhatIf) -> int:
        """Return the index in `revised.drafts` of the first draft that was made from the text of
        this form.
        """
        draft: int | None = self.cleaned_data["draft"]
        return draft - 1 if draft else len(revised.drafts) - len(self.cleaned_data["written"])

    def revised(self, trial: WhatIf, current: Policy | None) -> WhatIf:
        """Return the trial after the changes of the form: with drafts added or replaced, and with
        the form's limit. If the form removes a draft, nothing else changes.

        Raises InvalidValue for more messages than can be added at a time.
        """
        data, drafts = self.cleaned_data, list(trial.drafts)
        written: list[ChatMessage] = data["written"]
        if data["removed"]:
            del drafts[data["removed"] - 1 : data["removed"]]
            return WhatIf(tuple(drafts), trial.limit)
        if data["draft"] and written:
            drafts[data["draft"] - 1 : data["draft"]] = written
        else:
            drafts += written
        check_added(len(drafts))
        return WhatIf(tuple(drafts), self._limit(trial, current))

    def _limit(self, trial: WhatIf, current: Policy | None) -> int | None:
        """Return the limit to try: the form's limit if somebody changed it, else the trial's."""
        limit: int | None = self.cleaned_data["limit"] if self.changes_limit else trial.limit
        return None if current and limit == current.limit else limit


class BranchForm(DraftForm):
    """The form that saves a simulation as a new conversation."""

    def clean_new_id(self) -> str:
        try:
            return check_id(self.cleaned_data["new_id"])
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from error
