"""What requests carry: bodies, query parameters and headers, checked before a view sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, TypedDict

from rest_framework import serializers
from rest_framework.request import Request

from chatmemory.api import schemas  # noqa: F401  (registers how the fields are documented)
from chatmemory.api.errors import InvalidField
from chatmemory.api.sent_messages import DEFAULT_FORMAT, MESSAGES_MAX, read_messages
from chatmemory.conf import PAGE_MAX, configuration
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.policies import Policy, policy_kinds
from chatmemory.core.policy_texts import policies_from_text
from chatmemory.core.written_policies import policy_from_dict
from chatmemory.formats import FORMATS
from chatmemory.queries import CLIENT, ORDERINGS
from chatmemory.services.validation import ADDED_MAX, ID_LENGTH, check_policy

NUMBER_MAX = 10**18 - 1
VERSION_DIGITS = 18
POLICIES_MAX = 10
POLICIES_HELP = (
    "Such as `token_window:4000,message_window:20,everything`; an item with `=` is an option of "
    "the policy before it. At most 10."
)

# Fields


class PolicyField(serializers.Field):  # type: ignore[type-arg]
    """A policy of any installed kind."""

    def to_internal_value(self, data: Any) -> Policy:
        try:
            policy = check_policy(policy_from_dict(data))
        except InvalidValue as error:
            raise InvalidField("policy", str(error)) from error
        assert policy is not None
        return policy


class NameField(serializers.CharField):
    """One of the names that `choices` gives at the time of the request: plug-ins add to them."""

    default_error_messages = {"unknown": "must be one of {names}"}

    def __init__(self, choices: Callable[[], list[str]], **kwargs: Any) -> None:
        self.names = choices
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in self.names():
            self.fail("unknown", names=", ".join(self.names()))
        return name


class FormatField(NameField):
    """The name of a message format."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(lambda: list(FORMATS), default=DEFAULT_FORMAT, **kwargs)


class PageSizeField(serializers.IntegerField):
    """How many rows make a page; a larger number than PAGE_MAX means PAGE_MAX."""

    def __init__(self) -> None:
        super().__init__(
            min_value=1,
            default=lambda: configuration().PAGE_SIZE,
            help_text=f"Rows per page, at most {PAGE_MAX}.",
        )

    def to_internal_value(self, data: Any) -> int:
        return min(super().to_internal_value(data), PAGE_MAX)


class PoliciesField(serializers.CharField):
    """Policies in one line of text; reads as a list, with None for `everything`."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            found = [*map(check_policy, policies_from_text(super().to_internal_value(data)))]
        except InvalidValue as error:
            raise InvalidField("policies", str(error)) from error
        if len(found) > POLICIES_MAX:
            raise InvalidField("policies", f"at most {POLICIES_MAX} policies at a time")
        return found


class MessagesField(serializers.Field):  # type: ignore[type-arg]
    """Decoded JSON, parsed by `MessagesRequest.validate` once the format is known."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class LabelsField(serializers.DictField):
    """Names and strings; the service checks them."""


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


class MessagesRequest(Body):
    """Messages in one of the formats."""

    most = MESSAGES_MAX
    messages = MessagesField()
    format = FormatField(help_text="The format of the messages.")

    def validate(self, attrs: Any) -> Any:
        """Adds `sent`, SentMessages. Raises InvalidField, naming the message at fault."""
        attrs["sent"] = read_messages(attrs["messages"], attrs["format"], most=self.most)
        return attrs


class AddRequest(MessagesRequest):
    """Messages to add in their order, in one of the formats."""

    most = ADDED_MAX
    client_ids = serializers.ListField(
        child=serializers.CharField(max_length=ID_LENGTH, allow_null=True, trim_whitespace=False),
        required=False,
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

    conversations = serializers.ListField(child=MessagesField(), help_text="Lists of messages.")
    format = FormatField(help_text="The format of the messages.")
    policies = PoliciesField(help_text=POLICIES_HELP)

    def validate(self, attrs: Any) -> Any:
        """Adds `said`, the messages of each. Raises InvalidField, naming the message at fault."""
        attrs["said"], room = [], MESSAGES_MAX
        for number, values in enumerate(attrs["conversations"]):
            field = f"conversations[{number}]"
            attrs["said"].append(read_messages(values, attrs["format"], field, room).messages)
            room -= len(attrs["said"][-1])
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


class ChangedBy(TypedDict):
    """What every service that changes a conversation is told about the request."""

    actor: str
    expected_version: int | None


def changed_by(request: Request) -> ChangedBy:
    """Who asks, and the version they expect. Raises InvalidField."""
    return {"actor": actor(request), "expected_version": _expected_version(request.headers)}


def actor(request: Request) -> str:
    return str(request.user.get_username())


def _expected_version(headers: Mapping[str, str]) -> int | None:
    """The version in If-Match; None without the header and for `*`."""
    header = headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    version = header.removeprefix("W/").strip('"')
    if not version.isascii() or not version.isdigit() or len(version) > VERSION_DIGITS:
        raise InvalidField("If-Match", 'If-Match must hold a version such as "12"')
    return int(version)
