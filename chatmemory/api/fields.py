"""Fields of request bodies and queries that are stricter than the fields of REST framework.

A request has a list of messages in a message format. In some formats, an item of this list is
several messages, a part of a message, or no message. Client ids (the caller's own ids of messages)
and errors therefore refer to the items of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatmemory import exceptions as core
from chatmemory.api.errors import InvalidField, field_at_fault
from chatmemory.api.openapi import FORMATTED_MESSAGES, Schema, ref
from chatmemory.conf import PAGE_MAX, configuration
from chatmemory.formats import Loss, parse_messages, two_way_formats
from chatmemory.ledger.validation import check_labels, check_policy
from chatmemory.messages.codec import write_json
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage, with_open_attributes
from chatmemory.messages.texts import printable
from chatmemory.services import NewMessage
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policies_from_text, policy_from_dict

DEFAULT_FORMAT = "langchain4j"
POLICIES_MAX = 10
SHOWN_MAX = 40  # characters of a value that an error shows

AnyField: TypeAlias = "serializers.Field[Any, Any, Any, Any]"  # of any values


@extend_schema_field(ref("Policy"))
class PolicyField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A policy of any installed kind, as a JSON object."""

    def to_internal_value(self, data: JsonValue) -> Policy:
        with field_at_fault("policy"):
            return check_policy(policy_from_dict(data))


class TextField(serializers.CharField):
    """A string. Unlike its base class, this field refuses other JSON values, such as the
    number 5.
    """

    def to_internal_value(self, data: JsonValue) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(f"must be a string, but is: {_shown(data)}")
        return super().to_internal_value(data)


class WholeNumberField(serializers.IntegerField):
    """A whole number. Unlike its base class, this field refuses other JSON values, such as "5" and
    5.0.
    """

    def to_internal_value(self, data: JsonValue) -> int:
        if type(data) is not int:
            raise serializers.ValidationError(f"must be a whole number, but is: {_shown(data)}")
        return super().to_internal_value(data)


class FlagField(serializers.BooleanField):
    """True or false. Unlike its base class, this field refuses other JSON values, such as "no" and
    0.
    """

    def to_internal_value(self, data: JsonValue) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError(f"must be true or false, but is: {_shown(data)}")
        return data


class NameField(serializers.CharField):
    """One of the names that the function `choices` returns.

    `choices` is called for each request, because plug-ins can add names. The function `today` maps
    names of the previous release to current names.
    """

    default_error_messages = {"unknown": "must be one of {names}"}

    def __init__(
        self,
        choices: Callable[[], Collection[str]],
        help_text: str,
        today: Callable[[str], str] = str,
        **kwargs: Any,  # each argument of the base class has a type of its own
    ) -> None:
        self.names, self.today = choices, today
        super().__init__(required=False, help_text=help_text, **kwargs)

    def to_internal_value(self, data: JsonValue) -> str:
        name = self.today(super().to_internal_value(data))
        if name not in self.names():
            self.fail("unknown", names=", ".join(self.names()))
        return name


class NameFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    """Describes a NameField in the OpenAPI document as an enumeration of the currently known
    names.
    """

    target_class = NameField
    match_subclasses = True

    def map_serializer_field(self, auto_schema: object, direction: object) -> Schema:
        return {"type": "string", "enum": list(self.target.names())}


@extend_schema_field({"type": "string"})
class CacheField(NameField):
    """The name of a provider with a known prompt cache, such as `openai`. The OpenAPI document
    describes the name as a plain string, not as an enumeration.
    """


@extend_schema_field(ref("MessageFormat"))
class FormatField(NameField):
    """The name of a message format."""

    def __init__(self) -> None:
        super().__init__(two_way_formats, "The format of the messages.", default=DEFAULT_FORMAT)


class PageSizeField(serializers.IntegerField):
    """The number of rows on a page, from 1 to PAGE_MAX."""

    def __init__(self) -> None:
        super().__init__(
            min_value=1,
            max_value=PAGE_MAX,
            default=lambda: configuration().PAGE_SIZE,
            help_text=f"Rows per page, at most {PAGE_MAX}.",
        )


class PoliciesField(serializers.CharField):
    """Several policies in one line of text, such as `token_window:4000,everything`.

    The validated value is a list of policies, with None for `everything`.
    """

    def __init__(self) -> None:
        super().__init__(
            help_text="Policies, such as `token_window:4000,message_window:20,everything`. "
            "An item with `=` is an option of the policy before it. At most "
            f"{POLICIES_MAX} policies."
        )

    def to_internal_value(
        self, data: JsonValue
    ) -> Any:  # policies: not the text that its base class returns
        with field_at_fault("policies"):
            policies = policies_from_text(super().to_internal_value(data))
            found = [check_policy(each) for each in policies]
        if len(found) > POLICIES_MAX:
            raise InvalidField("policies", f"a request can have at most {POLICIES_MAX} policies")
        return found


def _all_or_list(type: str) -> Schema:
    return {
        "oneOf": [
            {"type": "boolean", "enum": [True]},
            {"type": "array", "items": {"type": type}},
        ]
    }


class AllOrListField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """Either True, which means all, or a list of values of the type `item`. In errors, `expected`
    names the kind of values.
    """

    item: type
    expected: str

    def to_internal_value(self, data: JsonValue) -> JsonValue:
        is_list = isinstance(data, list) and all(type(each) is self.item for each in data)
        if data is not True and not is_list:
            raise InvalidField(
                self.field_name or "", f"must be true, to choose all {self.expected}"
            )
        return data


@extend_schema_field(_all_or_list("string"))
class BranchesField(AllOrListField):
    item, expected = str, "branches with a copy of the text, or a list of ids of branches"


@extend_schema_field(_all_or_list("integer"))
class SummariesField(AllOrListField):
    item, expected = (
        int,
        ("summaries with exact terms of the message, or a list of seqs of summaries"),
    )


@extend_schema_field(ref("Labels"))
class LabelsField(serializers.DictField):
    """The labels of a conversation: an object with strings as values."""

    def to_internal_value(self, data: JsonValue) -> dict[str, str]:
        for name, value in data.items() if isinstance(data, dict) else ():
            if not isinstance(value, str):
                why = f"label {_shown(name)} must be a string, but is: {_shown(value)}"
                raise InvalidField("labels", why)
        try:
            return check_labels(data)
        except core.UnstorableText:
            raise
        except core.InvalidValue as error:
            raise InvalidField("labels", str(error)) from error


def _shown(value: object) -> str:
    """Return a value as JSON. If the text is long, return its beginning."""
    written = printable(write_json(value))
    return written if len(written) <= SHOWN_MAX else f"{written[:SHOWN_MAX]}…"


# Messages

_TOO_MANY = {
    "ADDED_MESSAGES": (
        "a request can add at most {most:,} messages, the limit of "
        'CHATMEMORY["ADDED_MESSAGES"]: send several requests'
    ),
    "LISTED_MESSAGES": (
        'a request can have at most {most:,} messages, the limit of CHATMEMORY["LISTED_MESSAGES"]'
    ),
}
_FORMATS_BY_KEY = {"role": "openai_chat", "from": "sharegpt"}


class MessagesField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A list of messages as decoded JSON. The messages are read later (`read_messages`), when their
    format is known.

    `setting` names the setting of CHATMEMORY that limits the number of messages.
    """

    def __init__(self, setting: str = "LISTED_MESSAGES") -> None:
        self.setting = setting
        super().__init__()

    def to_internal_value(self, data: JsonValue) -> JsonValue:
        return data


class MessagesFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    """Describes a MessagesField in the OpenAPI document, including how many messages the field
    allows.
    """

    target_class = MessagesField

    def map_serializer_field(self, auto_schema: object, direction: object) -> Schema:
        return {**FORMATTED_MESSAGES, "maxItems": getattr(configuration(), self.target.setting)}


@dataclass(frozen=True)
class SentMessages:
    """The messages that were read from a list of `count` items in a request.

    - `places`: for each message, the index of its item in the list.
    - `losses`: the details in the list that a `ChatMessage` cannot express. They are lost.
    """

    messages: list[ChatMessage]
    places: Sequence[int]
    count: int
    losses: Sequence[Loss] = ()

    def with_client_ids(self, client_ids: Sequence[str | None] | None) -> list[NewMessage]:
        """Return the messages, each with its client id: the caller's own id for the message.

        `client_ids` has an id or None for each item of the request's list. A message gets the id of
        its item. If `client_ids` is None, no message has a client id.

        Raises InvalidField if the number of client ids differs from the number of items.
        """
        client_ids = [None] * self.count if client_ids is None else client_ids
        if len(client_ids) != self.count:
            why = f"there must be one client id, or null, for each of the {self.count:,} messages"
            raise InvalidField("client_ids", why)
        return [
            NewMessage(message, client_ids[place])
            for message, place in zip(self.messages, self.places, strict=True)
        ]


def read_messages(
    values: JsonValue,
    format: str = DEFAULT_FORMAT,
    field: str = "messages",
    setting: str = "LISTED_MESSAGES",
    before: int = 0,
) -> SentMessages:
    """Return the messages of a request, read from `values`, a list of decoded JSON values.

    Raises InvalidField for an invalid item. The error names the item by `field` and index, such as
    `messages[2]`.

    `setting` names the setting of CHATMEMORY that limits the number of messages in a request.
    `before` is the number of messages in earlier lists of the same request, which count, too.
    Raises InvalidField for more messages.
    """
    most = getattr(configuration(), setting)
    if isinstance(values, list) and before + len(values) > most:
        raise InvalidField(field, _TOO_MANY[setting].format(most=most))
    try:
        read = parse_messages(values, format)
    except core.UnreadableTranscript as error:
        place = f"{field}[{error.index}]" if error.index >= 0 else field
        hint = _hint(values, error.index) if field and format == DEFAULT_FORMAT else ""
        raise InvalidField(place, f"{error.why}{hint}") from error
    except core.InvalidMessage as error:
        raise InvalidField(field, str(error)) from error
    messages = list(read.messages)
    if format != DEFAULT_FORMAT:  # only LangChain4j's JSON has the attributes themselves
        messages = [with_open_attributes(message) for message in messages]
    if len(read.turns) == len(messages):
        return SentMessages(messages, read.turns, len(values), read.losses)
    return SentMessages(messages, range(len(messages)), len(messages), read.losses)


def _hint(values: JsonValue, index: int) -> str:
    """Return a hint if the message at `index` seems to be in another format; else ""."""
    message = values[index] if index >= 0 else None
    for key, format in _FORMATS_BY_KEY.items():
        if isinstance(message, dict) and "type" not in message and key in message:
            return f'; messages with "{key}" are in another format: send "format": "{format}" too'
    return ""
