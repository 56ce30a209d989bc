"""The bodies, query parameters and headers of requests, checked before a view sees them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import Any, TypedDict, cast

from django.utils.http import parse_etags
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.fields import empty
from rest_framework.request import Request

from chatmemory import services
from chatmemory.api import fields
from chatmemory.api.errors import InvalidField, UnknownName
from chatmemory.api.fields import AnyField
from chatmemory.api.openapi import ref
from chatmemory.exceptions import ChatMemoryError
from chatmemory.flags import flags, today
from chatmemory.ledger import protocol
from chatmemory.ledger.validation import ID_LENGTH
from chatmemory.lint import PROVIDERS
from chatmemory.managers import CLIENT
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.quotes import HITS, HITS_MAX, QUERY_MAX
from chatmemory.patterns import declared_pattern
from chatmemory.reading.overview import orderings
from chatmemory.roles import actor_of
from chatmemory.windows.policies import policy_kinds

NUMBER_MAX = 10**18 - 1
VERSION = r'\*|(W/)?"[0-9]{1,18}"|[0-9]{1,18}'  # an ETag, a bare number, or *
_VERSION = declared_pattern(VERSION)

# Fields with a help text


def _number(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=NUMBER_MAX, required=False, help_text=help_text
    )


def _whole(help_text: str) -> fields.WholeNumberField:
    return fields.WholeNumberField(
        min_value=0, max_value=NUMBER_MAX, required=False, help_text=help_text
    )


def _moment(help_text: str) -> serializers.DateTimeField:
    """Return a field for a moment in UTC. A moment that UTC cannot express is refused here, before
    the database would fail.
    """
    return serializers.DateTimeField(required=False, default_timezone=UTC, help_text=help_text)


def _text(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, help_text=help_text)


# Bodies


class _Named(serializers.Serializer[Any]):  # it reads, and has no row
    """Base class of named values. Unknown names are refused, because ignoring a name could hide a
    typo.
    """

    called: str

    def to_internal_value(
        self, data: JsonValue
    ) -> Any:  # Parameters: its base class has no type for them
        for name in data:
            if name not in self.fields:
                known = f"the {self.called}s are {', '.join(self.fields)}"
                why = known if self.fields else "none are allowed here"
                raise UnknownName(str(name), f"unknown {self.called}: {why}")
        return super().to_internal_value(data)


class Body(_Named):
    """The body of a request: a JSON object. Unknown members are refused."""

    called = "member"

    def to_internal_value(
        self, data: JsonValue
    ) -> Any:  # Parameters: its base class has no type for them
        if not isinstance(data, dict):
            raise InvalidField("", "the body must be a JSON object")
        return super().to_internal_value(data)


class CreateMemoryRequest(Body):
    """The body of a request that creates a conversation."""

    id = fields.TextField(
        max_length=ID_LENGTH,
        trim_whitespace=False,
        help_text="Your own id for the conversation, as it is. Only URLs need an encoded id.",
    )
    policy = fields.PolicyField(
        required=False,
        allow_null=True,
        help_text="If left out, the default policy for this id. If null, the client decides "
        "the window.",
    )
    labels = fields.LabelsField(required=False)


class ChangeMemoryRequest(Body):
    """A new policy for a conversation, new labels, or both. A value that is left out does not
    change.
    """

    policy = fields.PolicyField(required=False)
    labels = fields.LabelsField(required=False)


class CompactRequest(Body):
    """A summary, and a choice of the messages that it replaces. The body has exactly one of these
    members:

    - `covering`: the summary replaces the messages with these seqs.
    - `keep_last`: the summary replaces all but this number of the newest messages.
    - `keep_tokens`: the summary replaces all but the newest messages, which together have at most
      this number of tokens.

    With `keep_last` and `keep_tokens`, a leading system message and pinned messages also stay.
    """

    summary = fields.TextField(
        trim_whitespace=False, help_text="The text of the summary, which becomes a user message."
    )
    covering = serializers.ListField(
        child=fields.WholeNumberField(min_value=0, max_value=NUMBER_MAX),
        required=False,
        help_text="The seqs of the messages that the summary replaces. All must be in memory.",
        error_messages={"not_a_list": "must be a list of seqs, the numbers of messages"},
    )
    keep_last = _whole(
        "Replace all messages but this number of the newest. A tool call stays with its results."
    )
    keep_tokens = _whole(
        "Replace all messages but the newest ones, which have up to this number of tokens."
    )
    append_terms = fields.WholeNumberField(
        min_value=0,
        max_value=1000,
        default=0,
        help_text="Append to the summary up to this number of exact terms that it would lose, "
        "if the limit has room.",
    )
    trigger = fields.TextField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="The reason for the compaction, such as `auto`, stored as the note of the "
        "step. A redaction does not remove it: quote no messages.",
    )


class MessagesRequest(Body):
    """Messages in a message format, at most as many as the setting LISTED_MESSAGES allows."""

    messages = fields.MessagesField()
    format = fields.FormatField()

    def validate(self, attrs: Parameters) -> Parameters:
        """Return the checked values and one more value: `sent`, the messages of the request as
        `SentMessages`.

        Raises InvalidField for an invalid message. The error names the message by its index, such
        as `messages[2]`.
        """
        setting = cast("fields.MessagesField", self.fields["messages"]).setting
        attrs["sent"] = fields.read_messages(attrs["messages"], attrs["format"], setting=setting)
        return attrs


class AddRequest(MessagesRequest):
    """Messages to add, in order, in a message format."""

    messages = fields.MessagesField("ADDED_MESSAGES")
    client_ids = serializers.ListField(
        child=fields.TextField(max_length=ID_LENGTH, allow_null=True, trim_whitespace=False),
        required=False,
        error_messages={"not_a_list": "must be a list of strings and nulls"},
        help_text="Your own id for each message, or null. A message sent again with its id "
        "is not added again. A redaction does not remove these ids: quote no "
        "messages in them.",
    )

    def validate(self, attrs: Parameters) -> Parameters:
        """Return the checked values and two more values. `sent` has the messages of the request as
        `SentMessages`, and `new` has these messages as `NewMessage`, each with its client id.

        Raises InvalidField for an invalid message. Also raises it if the list `client_ids` is
        present, but not as long as the list `messages`.
        """
        attrs = super().validate(attrs)
        attrs["new"] = attrs["sent"].with_client_ids(attrs.get("client_ids"))
        return attrs


class ListRequest(serializers.BaseSerializer[Any]):  # it reads, and has no row
    """A list of messages without an object around it, as LangChain4j sends it."""

    document = {"application/json": ref("MessageList")}

    def run_validation(self, data: JsonValue = empty) -> Parameters:
        """Return two values of the body: `messages` is `data` itself, a list of JSON objects.
        `sent` has the messages of this list as `SentMessages`.

        Raises InvalidField if the list or a message is invalid.
        """
        return {"sent": fields.read_messages(data, field=""), "messages": data}


# Query parameters


class Query(_Named):
    """The query parameters of an operation. Operations without parameters use this class itself."""

    called = "parameter"


class MemoryListQuery(Query):
    search = _text(
        "Text to find in ids, labels, messages, and texts that only model calls "
        "contain. Upper and lower case are equal."
    )
    policy = fields.NameField(
        lambda: [*policy_kinds(), CLIENT],
        f"The kind of policy that the conversations have, or `{CLIENT}` if their "
        "client decides the window.",
    )
    label = _text(  # type: ignore[assignment]  # the name of a field hides an attribute of the class
        "A label that the conversations have, as `name` or `name:value`."
    )
    flag = fields.NameField(
        lambda: [flag.name for flag in flags()],
        "Why the conversations need attention, or `any`. `never_in_memory`: a "
        "message left in the step that added it. `user_repeated`: a user had to "
        "say something again.",
        today,
    )
    active_since = _moment(
        "The earliest time of the last activity. A time without an offset is in UTC."
    )
    active_before = _moment("The last activity was before this time.")
    ordering = fields.NameField(
        lambda: [sign + name for name in orderings() for sign in ("", "-")],
        "The value to sort by. A minus before it sorts in descending order.",
        lambda name: f"-{today(name[1:])}" if name.startswith("-") else today(name),
        default="-activity",
    )
    size = fields.PageSizeField()
    cursor = _text("The cursor of a page, taken from `next` or `previous`.")
    count = serializers.BooleanField(
        default=False, help_text="Whether to count all conversations that match, on all pages."
    )


class WindowQuery(Query):
    at = _number("The step to show; by default the last one.")
    lint = fields.NameField(
        lambda: PROVIDERS, "Add `findings`: what this provider would reject or may mishandle."
    )
    repair = fields.NameField(
        lambda: PROVIDERS,
        "Return a repaired window that this provider accepts, and the repairs "
        "made. The stored window stays as it is.",
    )

    def get_fields(self) -> dict[str, AnyField]:
        """Add the parameter `as`, the message format. The class cannot have it as an attribute,
        because Python reserves the name `as`.
        """
        return {**super().get_fields(), "as": fields.FormatField()}


class HistoryQuery(Query):
    at = _number("The step to show; by default the last one.")
    before = _number("Only messages before this seq.")
    after = _number("Only messages after this seq; not with `before`.")
    around = _number("Messages on both sides of this seq; not with `before` or `after`.")
    size = fields.PageSizeField()


class SearchHistoryQuery(Query):
    query = serializers.CharField(
        max_length=QUERY_MAX,
        help_text="Words to search for. If no message has all words, the messages with most "
        "of them are found.",
    )
    limit = serializers.IntegerField(
        min_value=1, max_value=HITS_MAX, default=HITS, help_text="The largest number of hits."
    )


class StepsQuery(Query):
    after = _number("Only steps after this number.")
    size = fields.PageSizeField()


class StepQuery(Query):
    after = _number(
        "Skip this number of the messages that arrived, and as many of the messages that left."
    )
    size = fields.PageSizeField()


# Reading

Parameters = dict[str, Any]  # checked: each of the type of its field
Shape = type[serializers.BaseSerializer[Any]]  # it reads, and has no row


def checked(shape: Shape, values: object) -> Parameters:
    """Return the values of a query or a body as a dictionary, checked by the serializer class
    `shape`. Raises InvalidField, or REST framework's ValidationError, for an invalid value.
    """
    serializer = shape(data=values)
    serializer.is_valid(raise_exception=True)
    found: Parameters = serializer.validated_data
    return found


def read_body(shape: Shape, request: Request) -> Parameters:
    """Return the checked values of a request's body. Raises ValidationError or InvalidField for an
    invalid value.

    The body is checked only once per request: later calls return the same values. Lists of messages
    in the values (`messages`, `conversations`) are emptied to use less RAM. Use the values that
    were made from these lists, such as `sent`.
    """
    body: Parameters | None = getattr(request, "checked_body", None)
    if body is None:
        body = request.checked_body = checked(shape, request.data)  # type: ignore[attr-defined]  # an attribute of ours
        for values in (body.get("messages"), *body.get("conversations", ())):
            if isinstance(values, list):
                values.clear()
    return body


def read_ahead(shape: Shape, request: Request, memory_id: str) -> None:
    """Do the slow work of a request before the conversation is locked, and put the results into the
    checked body. `shape` is the class that checks the body.

    - Messages are read, and their tokens are counted.
    - A new window, or a compaction, is prepared but not stored.
    - If a new policy has another estimator, the tokens of the window are counted again.

    Errors are ignored here, because the handler raises them again.
    """
    with suppress(ChatMemoryError, APIException):
        body = read_body(shape, request)
        if "new" in body:
            body["new"] = services.new_messages(memory_id, body["new"])
        elif "sent" in body:
            messages = services.storable_messages(body["sent"].messages)
            body["sent"] = replace(body["sent"], messages=messages)
            plan = protocol.plan_update if shape is ListRequest else services.plan_list
            body["planned"] = plan(memory_id, messages, **changed_by(request))
        elif "summary" in body:
            body["planned"] = services.plan_compaction(memory_id, **body, **changed_by(request))
        if (policy := body.get("policy")) is not None:
            body["recount"] = services.Recount.ahead(memory_id, policy.estimator)


class ChangedBy(TypedDict):
    """The arguments of every service that changes a conversation. `actor` names who makes the
    change. `expected_version` is the version that the conversation must have; None accepts any
    version.
    """

    actor: str
    expected_version: int | None


def changed_by(request: Request) -> ChangedBy:
    """Return the caller's name and the version in the header If-Match. The version is None without
    this header, and for `*`.

    Raises InvalidField for an invalid header.
    """
    header = request.headers.get("If-Match", "*").strip()
    if not _VERSION.fullmatch(header):
        raise InvalidField(
            "If-Match",
            'If-Match must be the version of the conversation in quotation marks, such as "12"',
        )
    expected = None if header == "*" else int(header.removeprefix("W/").strip('"'))
    return {"actor": actor_of(request), "expected_version": expected}


def has_version(request: Request, version: int) -> bool:
    """Return whether the caller already has this version, because If-None-Match names it or is
    `*`.
    """
    etags = parse_etags(request.headers.get("If-None-Match", ""))
    return not {"*", f'"{version}"'}.isdisjoint(each.removeprefix("W/") for each in etags)
