"""What people type: drafts to simulate or add, and a limit to try."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from django import forms

from chatmemory.access.roles import Role, roles_within
from chatmemory.access.tokens import DAYS_AT_MOST
from chatmemory.core.codec import messages_from_json, messages_to_json
from chatmemory.core.exceptions import InvalidMessage, InvalidValue
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.policies import Policy, policy_from_text
from chatmemory.core.printable import printable
from chatmemory.formats import FORMATS, read_transcripts
from chatmemory.services.validation import ID_LENGTH, is_id

ROLES = [
    ("user", "User"),
    ("ai", "AI"),
    ("result", "Tool result"),
    ("system", "System"),
    ("script", "Script"),
]
IMPORT_BYTES = 16 * 2**20
DRAFT_LENGTH = 1_000_000
BULK_MOST = 500
LINE = re.compile(r"\s*(user|ai|system|call|result)\s*:\s?(.*)", re.IGNORECASE)
CALL = re.compile(r"\s*([\w.-]+)\s*\((.*)\)\s*", re.DOTALL)


def _select(**attributes: str) -> forms.Select:
    return forms.Select(attrs={"class": "select", **attributes})


class DraftForm(forms.Form):
    """The next message, or a script of several, behind the `drafts` of a simulation under way.

    `at` is the step it begins from (without it: now), `limit` another limit to try, `new_id` the
    name of a new conversation to save it as. A script is JSON in one of the transcript formats, or
    lines such as `user: hello`, `call: find({"id": 7})` and `result: found`; other lines go on
    with the one before.
    """

    role = forms.ChoiceField(choices=ROLES, initial="user")
    text = forms.CharField(required=False, strip=False, max_length=DRAFT_LENGTH)
    limit = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    drafts = forms.CharField(required=False, strip=False, max_length=DRAFT_LENGTH)
    at = forms.IntegerField(required=False, min_value=0, max_value=2**53)
    new_id = forms.CharField(required=False, max_length=ID_LENGTH)

    def clean_drafts(self) -> list[ChatMessage]:
        """Raises ValidationError for what no page of ours sent."""
        try:
            drafts = messages_from_json(self.cleaned_data["drafts"] or "[]")
        except InvalidMessage as error:
            raise forms.ValidationError(f"These drafts cannot be read: {error}") from error
        return [draft for draft in drafts if draft is not None]

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        text = data.get("text") or ""
        if not text.strip() and not data.get("limit") and not data.get("drafts"):
            raise forms.ValidationError("Write a message, or another limit, to see what it does.")
        try:
            data["written"] = read_draft(str(data.get("role")), text) if text.strip() else []
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from error
        return data

    @property
    def messages(self) -> list[ChatMessage]:
        """The drafts so far, then what was written last."""
        found: list[ChatMessage] = [*self.cleaned_data["drafts"], *self.cleaned_data["written"]]
        return found

    @property
    def step(self) -> int | None:
        at: int | None = self.cleaned_data["at"]
        return at

    def next(self) -> DraftForm:
        """The empty form for the message after these: the drafts, the role and the limit stay."""
        kept = {name: self.cleaned_data[name] for name in ("role", "limit", "at")}
        return DraftForm(initial=kept | {"drafts": messages_to_json(self.messages)})

    def policy(self, current: Policy | None) -> Policy | None:
        """A policy with the wanted limit; None where it stays as it is."""
        limit = self.cleaned_data.get("limit")
        if current is None or limit in (None, current.limit):
            return None
        return replace(current, limit=limit)


class BulkForm(forms.Form):
    """What to do with some conversations; `next` is the overview's query to go back to."""

    action = forms.ChoiceField(choices=[(name, name) for name in ("export", "label", "delete")])
    label_as_text = forms.CharField(required=False, max_length=ID_LENGTH)
    confirmed = forms.BooleanField(required=False)
    next = forms.CharField(required=False, max_length=2_000)

    @property
    def ids(self) -> list[str]:
        """As they were chosen, each once; what can be no id is left out."""
        chosen = dict.fromkeys(self.data.getlist("id")[:BULK_MOST])  # type: ignore[attr-defined]
        return [memory_id for memory_id in chosen if is_id(memory_id)]

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
            raise forms.ValidationError("A label is written as name:value.")
        return data


class TokenForm(forms.Form):
    """A new API token; without days it lets in for ever. Nobody gives a role above their own."""

    name = forms.CharField(max_length=100)
    role = forms.ChoiceField(choices=(), initial=Role.OPERATOR, widget=_select())
    beginning = forms.CharField(required=False, max_length=ID_LENGTH, strip=False)
    days = forms.IntegerField(required=False, min_value=1, max_value=DAYS_AT_MOST)

    def __init__(self, giver: Any, data: Any = None) -> None:
        super().__init__(data)
        role = cast(forms.ChoiceField, self.fields["role"])
        role.choices = [(each.value, each.label) for each in roles_within(giver)]

    @property
    def wanted(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "name": data["name"],
            "role": data["role"],
            "prefix": data["beginning"],
            "days": data["days"],
        }


class ExportForm(forms.Form):
    """What to take out of a conversation, as which format, at which step (without one: now)."""

    format = forms.ChoiceField(choices=[(name, name) for name in FORMATS], widget=_select())
    what = forms.ChoiceField(
        choices=[("history", "Everything said"), ("window", "The window")], widget=_select()
    )
    at = forms.IntegerField(required=False, min_value=0, max_value=2**53)


class ImportForm(forms.Form):
    """A transcript file, and the policy under which to replay it."""

    file = forms.FileField()
    format = forms.ChoiceField(
        choices=[("auto", "Detect"), *((name, name) for name in FORMATS)], widget=_select()
    )
    kind = forms.ChoiceField(
        choices=[("message_window", "messages"), ("token_window", "tokens")],
        widget=_select(**{"aria-label": "Unit"}),
    )
    limit = forms.IntegerField(min_value=1, max_value=2**53, initial=20)
    begin = forms.CharField(required=False, max_length=100, strip=True)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size is None or file.size > IMPORT_BYTES:
            raise forms.ValidationError(
                f"The file is larger than {IMPORT_BYTES // 2**20} MB: use import_transcripts."
            )
        return file

    @property
    def policy(self) -> Policy:
        return policy_from_text(f"{self.cleaned_data['kind']}:{self.cleaned_data['limit']}")

    @property
    def id_prefix(self) -> str:
        """As the command has it: the file's name and a dash, unless another is given."""
        name: str = self.cleaned_data["file"].name or "import"
        return self.cleaned_data["begin"] or f"{name.partition('.')[0]}-"


def first_problem(form: forms.Form) -> str:
    """What is wrong first, in words; empty where nothing is."""
    return next((str(words) for errors in form.errors.values() for words in errors), "")


def read_draft(role: str, text: str) -> list[ChatMessage]:
    """Raises InvalidValue for a script that cannot be read."""
    if role == "script":
        return _read_script(text)
    return [_message(role, text)]


def _read_script(text: str) -> list[ChatMessage]:
    if text.lstrip()[:1] in ("[", "{"):
        reading = read_transcripts(text)
        for refused in reading.refused:
            raise InvalidValue(printable(f"{refused.where}: {refused.why}"))
        return [m for t in reading.transcripts for m in t.messages]
    messages = [_message(role, said) for role, said in _turns(text)]
    return _paired(messages)


def _turns(text: str) -> Iterator[tuple[str, str]]:
    role = ""
    lines: list[str] = []
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        if found:
            if role:
                yield role, "\n".join(lines)
            role, lines = found[1].lower(), [found[2]]
        elif role:
            lines.append(line)
        elif line.strip():
            raise InvalidValue("a script begins with user:, ai:, system:, call: or result:")
    if role:
        yield role, "\n".join(lines).rstrip("\n")


def _message(role: str, text: str) -> ChatMessage:
    match role:
        case "system":
            return SystemMessage(text)
        case "ai":
            return AiMessage(text)
        case "result":
            return ToolExecutionResultMessage(None, None, text)
        case "call":
            found = CALL.fullmatch(text)
            name, arguments = (found[1], found[2]) if found else (text.strip(), None)
            return AiMessage(None, (ToolExecutionRequest(None, name, arguments),))
    return UserMessage(text)


def _paired(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Name the tool of a result behind its call."""
    name: str | None = None
    paired: list[ChatMessage] = []
    for message in messages:
        if isinstance(message, AiMessage) and message.tool_execution_requests:
            request = message.tool_execution_requests[0]
            name = request.name if request else None
        if isinstance(message, ToolExecutionResultMessage):
            message = ToolExecutionResultMessage(None, name, message.contents)
        paired.append(message)
    return paired
