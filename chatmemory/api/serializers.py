"""What goes over the wire. Messages are LangChain4j's JSON; rows are the queries' own."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatmemory.api import schemas
from chatmemory.api.problems import InvalidField
from chatmemory.converters import address
from chatmemory.core.codec import message_to_dict
from chatmemory.core.exceptions import InvalidMessage, InvalidValue, UnreadableTranscript
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy, policy_from_dict
from chatmemory.formats import FORMATS, parse_messages
from chatmemory.services import NewMessage
from chatmemory.services.validation import ID_LENGTH, check_policy

MESSAGES_MAX = 10_000


@extend_schema_field(schemas.POLICY)
class PolicyField(serializers.Field):  # type: ignore[type-arg]
    """A policy; null where the client decides the window."""

    def to_representation(self, value: Policy) -> dict[str, Any]:
        return value.to_dict()

    def to_internal_value(self, data: Any) -> Policy:
        try:
            policy = check_policy(policy_from_dict(data))
        except InvalidValue as error:
            raise InvalidField("policy", str(error)) from error
        assert policy is not None
        return policy


@extend_schema_field(schemas.SAID)
class MessagesField(serializers.Field):  # type: ignore[type-arg]
    """Decoded JSON values, read by `BodyOfMessages.messages` once the format is known."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(schemas.MESSAGE)
class MessageField(serializers.Field):  # type: ignore[type-arg]
    def to_representation(self, value: ChatMessage) -> dict[str, Any]:
        return message_to_dict(value) or {}

    def to_internal_value(self, data: Any) -> ChatMessage:
        raise NotImplementedError("messages are read through MessagesField")


class StrictSerializer(serializers.Serializer[Any]):
    """A body whose unknown members are refused, so that a misspelt one is not silently ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise InvalidField("", "the body must be a JSON object")
        for name in data:
            if name not in self.fields:
                raise InvalidField(str(name), f"unknown member; known are {', '.join(self.fields)}")
        return super().to_internal_value(data)


@extend_schema_field(schemas.LABELS)
class LabelsField(serializers.DictField):
    """Names and strings; `services` checks them."""


# Bodies


class BodyOfMemory(StrictSerializer):
    id = serializers.CharField(max_length=ID_LENGTH, trim_whitespace=False)
    policy = PolicyField()
    labels = LabelsField(required=False)


class BodyOfChange(StrictSerializer):
    policy = PolicyField(required=False)
    labels = LabelsField(required=False)


class BodyOfMessages(StrictSerializer):
    """Messages in one of the formats. `client_ids` (one each, or null) make a retry harmless."""

    messages = MessagesField()
    format = serializers.ChoiceField(choices=list(FORMATS), default="langchain4j")
    client_ids = serializers.ListField(
        child=serializers.CharField(max_length=255, allow_null=True), required=False
    )

    def said(self) -> list[NewMessage]:
        """Raises InvalidField, naming the message."""
        messages = read_messages(self.validated_data["messages"], self.validated_data["format"])
        ids = self.validated_data.get("client_ids") or [None] * len(messages)
        if len(ids) != len(messages):
            raise InvalidField("client_ids", "there must be one client id, or null, per message")
        return [
            NewMessage(message, client_id) for message, client_id in zip(messages, ids, strict=True)
        ]


class BodyOfSimulation(BodyOfMessages):
    policy = PolicyField(required=False)
    at = serializers.IntegerField(
        required=False, min_value=0, max_value=2**53, help_text="a step to begin from; else now"
    )


def read_messages(values: Any, format: str, field: str = "messages") -> list[ChatMessage]:
    """Raises InvalidField, naming the message at fault as `messages[2]`."""
    if isinstance(values, list) and len(values) > MESSAGES_MAX:
        raise InvalidField(field, f"at most {MESSAGES_MAX:,} messages at a time")
    try:
        return list(parse_messages(values, format).messages)
    except UnreadableTranscript as error:
        place = f"{field}[{error.index}]" if error.index >= 0 else field
        raise InvalidField(place, error.why) from error
    except InvalidMessage as error:
        raise InvalidField(field, str(error)) from error


# Answers


class TotalsAnswer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="messages")
    tokens = serializers.IntegerField(help_text="the sum of their tokens, no overhead")


class MemoryAnswer(serializers.Serializer[Any]):
    id = serializers.CharField()
    address = serializers.SerializerMethodField(help_text="the id as a segment of a URL")
    policy = PolicyField(allow_null=True)
    labels = LabelsField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    version = serializers.IntegerField(help_text="what If-Match compares")
    last_step = serializers.IntegerField()
    said_count = serializers.IntegerField(help_text="messages in history")
    history_tokens = serializers.IntegerField()
    window = TotalsAnswer()
    load = serializers.IntegerField(allow_null=True, help_text="what the limit bounds")

    def get_address(self, row: Any) -> str:
        return address(row.id)


class MemoryPageAnswer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = MemoryAnswer(many=True)


class StayAnswer(serializers.Serializer[Any]):
    entered_step = serializers.IntegerField()
    left_step = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    tokens = serializers.IntegerField()


class HistoryMessage(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    type = serializers.CharField()
    text = serializers.CharField()
    tokens = serializers.IntegerField()
    said_at = serializers.DateTimeField()
    client_id = serializers.CharField(allow_null=True)
    message = MessageField()
    stays = StayAnswer(many=True)


class HistoryAnswer(serializers.Serializer[Any]):
    messages = HistoryMessage(many=True)
    earlier = serializers.URLField(allow_null=True)
    later = serializers.URLField(allow_null=True)


class LeftAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    type = serializers.CharField()
    tokens = serializers.IntegerField()
    reason = serializers.CharField()
    because_seq = serializers.IntegerField(
        allow_null=True, help_text="the tool call it left with, or the message that replaced it"
    )


class ChangeAnswer(serializers.Serializer[Any]):
    """What one change did; an ignored one has no step."""

    change = serializers.CharField(source="kind")
    ignored = serializers.BooleanField()
    step = serializers.IntegerField(allow_null=True)
    seq = serializers.IntegerField(allow_null=True, help_text="the message that was added")
    left = LeftAnswer(many=True, source="evicted")
    before = TotalsAnswer()
    after = TotalsAnswer()


class TransitionsAnswer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    transitions = ChangeAnswer(many=True)
    lost = serializers.ListField(child=serializers.DictField(), required=False)


class SimulationAnswer(serializers.Serializer[Any]):
    policy = PolicyField()
    transitions = ChangeAnswer(many=True)
    window = TotalsAnswer()
    limit = serializers.IntegerField()
    load = serializers.IntegerField()


class WindowAnswer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    policy = PolicyField(allow_null=True)
    messages = MessagesField()
    seqs = serializers.ListField(child=serializers.IntegerField())
    totals = TotalsAnswer()
    load = serializers.IntegerField(allow_null=True)
    limit = serializers.IntegerField(allow_null=True)
    beyond = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="seqs over a lowered limit: not shown to the model, they leave at the next add",
    )
    lost = serializers.ListField(
        child=serializers.DictField(), help_text="what the format asked for has no place for"
    )


class StepAnswer(serializers.Serializer[Any]):
    n = serializers.IntegerField()
    kind = serializers.CharField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    by_client = serializers.BooleanField()
    policy = PolicyField(allow_null=True)
    before = TotalsAnswer()
    after = TotalsAnswer()
    history_tokens = serializers.IntegerField()
    said_count = serializers.IntegerField()
    note = serializers.CharField()


class StepsAnswer(serializers.Serializer[Any]):
    steps = StepAnswer(many=True)
    later = serializers.URLField(allow_null=True)


class ReceiptAnswer(serializers.Serializer[Any]):
    label = serializers.CharField()  # type: ignore[assignment]
    amount = serializers.IntegerField()
    kind = serializers.CharField()


class StepDetailAnswer(StepAnswer):
    words = serializers.CharField(help_text="the step in one sentence")
    arrived = serializers.ListField(child=serializers.IntegerField())
    left = LeftAnswer(many=True)
    receipt = ReceiptAnswer(many=True)


class WhyAnswer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    question = serializers.CharField()
    words = serializers.CharField()
    receipt = ReceiptAnswer(many=True)


class RedactionAnswer(serializers.Serializer[Any]):
    n = serializers.IntegerField(help_text="the step that took its words away")
    at = serializers.DateTimeField()
    actor = serializers.CharField()


class MessageAnswer(HistoryMessage):
    redacted = RedactionAnswer(allow_null=True)
    origin = serializers.CharField()
    in_memory = serializers.BooleanField()
    why = WhyAnswer(allow_null=True, help_text="why it left, when it is not in memory now")


class ProblemAnswer(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    field = serializers.CharField(required=False, help_text="the member at fault: messages[2]")
