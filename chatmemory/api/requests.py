"""What requests carry: bodies, query parameters and headers, checked before a view sees them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import Any, TypedDict

from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from chatmemory import services
from chatmemory.access.actors import actor_of
from chatmemory.api import schemas  # noqa: F401  (registers how the fields are documented)
from chatmemory.api.errors import InvalidField
from chatmemory.api.fields import (
    BranchesField,
    FormatField,
    LabelsField,
    MessagesField,
    NameField,
    PageSizeField,
    PoliciesField,
    PolicyField,
)
from chatmemory.api.sent_messages import SentMessages, read_messages
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.core.policies import policy_kinds
from chatmemory.queries import CLIENT, ORDERINGS
from chatmemory.services.validation import ID_LENGTH

NUMBER_MAX = 10**18 - 1
VERSION_DIGITS = 18
POLICIES_HELP = (
    "Such as `token_window:4000,message_window:20,everything`; an item with `=` is an option of "
    "the policy before it. At most 10."
)

# Fields with a text of help


def _number(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=NUMBER_MAX, required=False, help_text=help_text
    )


def _moment(help_text: str) -> serializers.DateTimeField:
    """Read as UTC: a moment that UTC cannot express is refused here and not by the database."""
    return serializers.DateTimeField(required=False, default_timezone=UTC, help_text=help_text)


def _text(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, help_text=help_text)


# Bodies


class Body(serializers.Serializer[Any]):
    """A JSON object. Unknown members are refused: ignoring one would hide a typo."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise InvalidField("", "the body must be a JSON object")
        for name in data:
            if name not in self.fields:
                raise InvalidField(
                    str(name), f"unknown member: the members are {', '.join(self.fields)}"
                )
        return super().to_internal_value(data)


class CreateMemoryRequest(Body):
    """A new conversation."""

    id = serializers.CharField(
        max_length=ID_LENGTH,
        trim_whitespace=False,
        help_text="Your own id of the conversation, as it is: it is encoded in URLs only.",
    )
    policy = PolicyField(
        required=False,
        allow_null=True,
        help_text="Without it, the default policy of the id; null: the client decides the window.",
    )
    labels = LabelsField(required=False)


class ChangeMemoryRequest(Body):
    """What is to be changed; what is left out stays."""

    policy = PolicyField(required=False)
    labels = LabelsField(required=False)


class RedactRequest(Body):
    """What else is to be redacted."""

    branches = BranchesField(
        default=list,
        help_text="The branches whose copies of the text are removed too: their ids, or true.",
    )


class MessagesRequest(Body):
    """Messages in one of the formats, at most as many as the setting allows."""

    setting = "LISTED_MESSAGES"
    messages = MessagesField()
    format = FormatField(help_text="The format of the messages.")

    def validate(self, attrs: Any) -> Any:
        """Adds `sent`, SentMessages. Raises InvalidField, naming the message at fault."""
        attrs["sent"] = read_messages(attrs["messages"], attrs["format"], setting=self.setting)
        return attrs


class AddRequest(MessagesRequest):
    """Messages to add in their order, in one of the formats."""

    setting = "ADDED_MESSAGES"
    client_ids = serializers.ListField(
        child=serializers.CharField(max_length=ID_LENGTH, allow_null=True, trim_whitespace=False),
        required=False,
        error_messages={"not_a_list": "must be a list of strings and nulls"},
        help_text="Your own id of each message, or null: a message sent again is not added again.",
    )

    def validate(self, attrs: Any) -> Any:
        """Adds `new`, a list of NewMessage, too."""
        attrs = super().validate(attrs)
        attrs["new"] = attrs["sent"].with_client_ids(attrs.get("client_ids"))
        return attrs


class SimulationRequest(MessagesRequest):
    """Messages that are not added, and where to try them."""

    policy = PolicyField(
        required=False, help_text="The policy to try; by default the one in force."
    )
    at = _number("The step to start from; by default the last one.")
    recount = serializers.BooleanField(
        default=False,
        help_text="Count more than 5,000 messages anew if the policy has another estimator.",
    )


class RecallRequest(Body):
    """Conversations in one of the formats, and policies to compare."""

    conversations = serializers.ListField(
        child=MessagesField(),
        help_text="Lists of messages, in all as many as one list may have.",
        error_messages={
            "not_a_list": "must be a list of conversations, each a list of messages",
        },
    )
    format = FormatField(help_text="The format of the messages.")
    policies = PoliciesField(help_text=POLICIES_HELP)

    def validate(self, attrs: Any) -> Any:
        """Adds `said`, the messages of each. Raises InvalidField, naming the message at fault."""
        attrs["said"], before = [], 0
        for number, values in enumerate(attrs["conversations"]):
            field = f"conversations[{number}]"
            sent = read_messages(values, attrs["format"], field, before=before)
            attrs["said"].append(sent.messages)
            before += len(sent.messages)
        return attrs


# Query parameters; unknown ones are ignored


class MemoryListQuery(serializers.Serializer[Any]):
    search = _text("Text to find in ids and in what was said, ignoring case.")
    policy = NameField(
        lambda: [*policy_kinds(), CLIENT],
        required=False,
        help_text=f"A policy kind, or `{CLIENT}` for conversations whose client decides.",
    )
    label = _text(  # type: ignore[assignment]
        "A label, as `name` or `name:value`."
    )
    active_since = _moment("The earliest last activity; UTC where no offset is given.")
    active_before = _moment("The end of the last activity, exclusive.")
    ordering = NameField(
        lambda: [sign + name for name in ORDERINGS for sign in ("", "-")],
        default="-activity",
        help_text="The sort order, descending with a minus.",
    )
    size = PageSizeField()
    cursor = _text("The place of a page, from `next` or `previous`.")


class RecallQuery(serializers.Serializer[Any]):
    label = _text(  # type: ignore[assignment]
        "A label, as `name` or `name:value`."
    )
    prefix = _text("The beginning of the ids.")
    policies = PoliciesField(help_text=POLICIES_HELP)


class WindowQuery(serializers.Serializer[Any]):
    at = _number("The step to show; by default the last one.")

    def get_fields(self) -> dict[str, Any]:
        """With `as`, which Python does not allow as an attribute."""
        return {**super().get_fields(), "as": FormatField(help_text="The format of the messages.")}


class HistoryQuery(serializers.Serializer[Any]):
    at = _number("The step to show; by default the last one.")
    before = _number("Only messages before this seq.")
    after = _number("Only messages after this seq; not with `before`.")
    around = _number("Messages on both sides of this seq; not with `before` or `after`.")
    size = PageSizeField()


class StepsQuery(serializers.Serializer[Any]):
    after = _number("Only steps after this one.")
    size = PageSizeField()


class StepQuery(serializers.Serializer[Any]):
    after = _number("Leave out this many of the messages that arrived, and of those that left.")
    size = PageSizeField()


# Reading


def read(shape: type[serializers.Serializer[Any]], values: Any) -> dict[str, Any]:
    """The checked values of a body or of query parameters.

    Raises ValidationError and InvalidField.
    """
    serializer = shape(data=values)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked


def read_body(shape: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The checked values of a body, which is read once. Raises as `read` does."""
    checked: dict[str, Any] | None = getattr(request, "checked_body", None)
    if checked is None:
        checked = read(shape, request.data)
        _forget(checked.get("messages"), *checked.get("conversations", ()))
        request.checked_body = checked  # type: ignore[attr-defined]
    return checked


def read_list(request: Request) -> SentMessages:
    """The messages of a body that is a bare array, which is read once. Raises InvalidField."""
    sent: SentMessages | None = getattr(request, "sent_messages", None)
    if sent is None:
        sent = read_messages(request.data, field="")
        _forget(request.data)
        request.sent_messages = sent  # type: ignore[attr-defined]
    return sent


def _forget(*lists: Any) -> None:
    """Empty lists of messages that have been read: as decoded JSON they take more memory."""
    for values in lists:
        if isinstance(values, list):
            values.clear()


def read_ahead(shape: Any, request: Request, memory_id: str) -> None:
    """Read a body before anything is locked, check and count its messages, or count the window anew
    for its policy.

    What is wrong with it is told when it is used.
    """
    with suppress(ChatMemoryError, APIException):
        if not isinstance(shape, type):
            request.sent_messages = _checked(memory_id, read_list(request))  # type: ignore[attr-defined]
            return
        body = read_body(shape, request)
        if "new" in body:
            body["new"] = services.new_messages(memory_id, body["new"])
        elif "sent" in body:
            body["sent"] = _checked(memory_id, body["sent"])
        if (policy := body.get("policy")) is not None:
            body["recount"] = services.Recount.ahead(memory_id, policy.estimator)


def _checked(memory_id: str, sent: SentMessages) -> SentMessages:
    """Return messages of which nothing has to be checked or counted any more."""
    messages = services.storable_messages(sent.messages)
    services.count_ahead(memory_id, messages)
    return replace(sent, messages=messages)


class ChangedBy(TypedDict):
    """What every service that changes a conversation is told about the request."""

    actor: str
    expected_version: int | None


def changed_by(request: Request) -> ChangedBy:
    """Who asks, and the version they expect. Raises InvalidField."""
    return {"actor": actor_of(request), "expected_version": _expected_version(request.headers)}


def _expected_version(headers: Mapping[str, str]) -> int | None:
    """The version in If-Match; None without the header and for `*`."""
    header = headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    version = header.removeprefix("W/").strip('"')
    if not version.isascii() or not version.isdigit() or len(version) > VERSION_DIGITS:
        raise InvalidField("If-Match", 'If-Match must hold a version such as "12"')
    return int(version)
