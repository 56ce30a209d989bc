"""What people type: drafts to simulate or add, and a limit to try."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django import forms

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.policies import Policy, policy_from_text
from chatmemory.formats import FORMATS, read_transcripts

ROLES = [
    ("user", "User"),
    ("ai", "AI"),
    ("result", "Tool result"),
    ("system", "System"),
    ("script", "Script"),
]
IMPORT_BYTES = 16 * 2**20
LINE = re.compile(r"\s*(user|ai|system|call|result)\s*:\s?(.*)", re.IGNORECASE)
CALL = re.compile(r"\s*([\w.-]+)\s*\((.*)\)\s*", re.DOTALL)


class DraftForm(forms.Form):
    """One message, or a script of several; and, if wanted, another limit.

    A script is JSON in one of the transcript formats, or lines such as `user: hello`,
    `call: find({"id": 7})` and `result: found`; other lines go on with the one before.
    """

    role = forms.ChoiceField(choices=ROLES, initial="user")
    text = forms.CharField(required=False, strip=False, max_length=1_000_000)
    limit = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        text = data.get("text") or ""
        if not text.strip() and not data.get("limit"):
            raise forms.ValidationError("Write a message, or another limit, to see what it does.")
        try:
            data["messages"] = read_draft(str(data.get("role")), text) if text.strip() else []
        except InvalidValue as error:
            raise forms.ValidationError(str(error)) from error
        return data

    @property
    def messages(self) -> list[ChatMessage]:
        found: list[ChatMessage] = self.cleaned_data["messages"]
        return found

    def policy(self, current: Policy | None) -> Policy | None:
        """The conversation's policy with the wanted limit; None where it stays as it is."""
        limit = self.cleaned_data.get("limit")
        if current is None or limit in (None, current.limit):
            return None
        return replace(current, limit=limit)

    @property
    def problem(self) -> str:
        """The first thing that is wrong, in words."""
        return next((str(words) for errors in self.errors.values() for words in errors), "")


class ExportForm(forms.Form):
    """What to take out of a conversation, as which format, at which step (without one: now)."""

    format = forms.ChoiceField(choices=[(name, name) for name in FORMATS])
    what = forms.ChoiceField(choices=[("history", "Everything said"), ("window", "The window")])
    at = forms.IntegerField(required=False, min_value=0, max_value=2**53)


class ImportForm(forms.Form):
    """A transcript file, and the policy under which to replay it."""

    file = forms.FileField()
    format = forms.ChoiceField(choices=[("auto", "Detect"), *((name, name) for name in FORMATS)])
    kind = forms.ChoiceField(choices=[("message_window", "Messages"), ("token_window", "Tokens")])
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


def read_draft(role: str, text: str) -> list[ChatMessage]:
    """Raises InvalidValue for a script that cannot be read."""
    if role == "script":
        return _read_script(text)
    return [_message(role, text)]


def _read_script(text: str) -> list[ChatMessage]:
    if text.lstrip()[:1] in ("[", "{"):
        return [m for t in read_transcripts(text).transcripts for m in t.messages]
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
