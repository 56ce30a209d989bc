"""The REST API of model calls."""

from __future__ import annotations

import json

from django.http import Http404, HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import fields
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import changes, reads
from chatmemory.api.requests import Parameters, Query, changed_by
from chatmemory.api.responses import Json, response, whole_json, with_query
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.roles import ERASE
from inspector.rooms.calls.call import REMEDIES, DropReason
from inspector.rooms.calls.erasure import redact_sent
from inspector.rooms.calls.models import DroppedCalls, ModelCall
from inspector.rooms.calls.reads import (
    CallNotFound,
    RebuiltCall,
    calls,
    newest_dropped,
    one_call,
)


class CallsQuery(Query):
    size = fields.PageSizeField()
    cursor = serializers.CharField(
        required=False, allow_blank=True, help_text="The cursor of a page, taken from `next`."
    )


class UsageSerializer(Json):
    input = serializers.IntegerField(
        allow_null=True,
        help_text="The number of all input tokens, including tokens read from the prompt cache "
        "and tokens written to it.",
    )
    cached = serializers.IntegerField(allow_null=True)
    written = serializers.IntegerField(allow_null=True)
    output = serializers.IntegerField(
        allow_null=True, help_text="The number of output tokens, including reasoning tokens."
    )
    reasoning = serializers.IntegerField(allow_null=True)


class CallSerializer(Json):
    n = serializers.IntegerField(help_text="The number of the call in its conversation.")
    step = serializers.IntegerField(
        allow_null=True,
        help_text="The step after which the window equals the messages of this call. Null if "
        "calls did not begin the conversation, and if the messages could not be stored.",
    )
    provider = serializers.CharField()
    model = serializers.CharField()
    format = serializers.CharField(help_text="The format of the request, such as openai_chat.")
    at = serializers.DateTimeField(help_text="The time at which the call began.")
    duration = serializers.FloatField(
        allow_null=True, help_text="The duration of the call in seconds; null if unknown."
    )
    usage = UsageSerializer(
        help_text="Numbers of tokens as the provider counted them; a number is null if the "
        "provider did not report it."
    )
    finish = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    is_exact = serializers.BooleanField(
        help_text="Whether `request` is equal, as JSON, to the whole request that was sent."
    )
    removed = serializers.IntegerField(
        help_text="The number of places in the body from which a secret was removed."
    )

    def get_finish(self, call: ModelCall) -> str | None:
        return call.finish or None

    def get_error(self, call: ModelCall) -> str | None:
        return call.error or None


class CallPageSerializer(Json):
    next = serializers.URLField(allow_null=True)
    results = CallSerializer(many=True)


_OBJECT = {"type": "object", "additionalProperties": True}


@extend_schema_field(_OBJECT)
class BodyField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A request, as a JSON object in the format of its provider."""

    def to_representation(self, value: JsonValue) -> JsonValue:
        return value


@extend_schema_field({})  # for an object or null, client generators would invent a class name
class AnswerField(BodyField):
    """A response, as a JSON object in the format of its provider; null if no response is stored."""


class CallDetailSerializer(CallSerializer):
    request = BodyField(
        help_text="The body of the request that the provider received, as a JSON object."
    )
    response = AnswerField(
        help_text="The provider's answer as a JSON object; null without an answer."
    )
    messages = serializers.ListField(
        child=serializers.IntegerField(allow_null=True),
        help_text="The seqs of the request's messages in this conversation; null for a message "
        "that is only in calls, not in the history.",
    )


class CallList(Resource):
    @reads(CallPageSerializer, query=CallsQuery, name="list_calls")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """List the calls of a conversation.

        The calls are in the order in which they began. `next` is the URL of the next page.
        """
        with field_at_fault("cursor"):
            page = calls(memory_id, parameters.get("cursor", ""), parameters["size"])
        following = with_query(request, cursor=page.next) if page.next else None
        return response(CallPageSerializer, {"next": following, "results": page.calls})


class OneCall(Resource):
    @reads(CallDetailSerializer, name="get_call")
    def get(self, request: Request, memory_id: str, n: int) -> HttpResponse:
        """Show a model call with its request.

        The request is as it was sent, unless `is_exact` is false. Then it is rebuilt from a trace
        span, or a secret or a redacted text was removed from it.
        """
        try:
            found = one_call(memory_id, n)
        except CallNotFound as error:
            raise Http404(str(error)) from error
        # A request may have half of a character, which JSON escapes and UTF-8 cannot encode
        return whole_json([json.dumps(whole(found))])


def whole(found: RebuiltCall) -> JsonDict:
    """Return the API's answer about a model call.

    The answer has the fields of the call, and its request and response in the provider's format.
    `messages` has the seq of each message of the request, or None for a message that is not in
    history.
    """
    return {
        **CallSerializer(found.row).data,
        "request": found.request,
        "response": found.response,
        "messages": found.seqs,
    }


class RedactedSentSerializer(Json):
    is_new = serializers.BooleanField(
        help_text="True if this request removed the text. False if an earlier redaction had "
        "removed it."
    )


class SentRedaction(Resource):
    needs = {"POST": ERASE}

    @changes(RedactedSentSerializer, name="redact_sent_message")
    def post(self, request: Request, memory_id: str, n: int, place: int) -> Response:
        """Redact a message that only calls sent.

        `place` is the index of the message in the `messages` of the call, where null stands for a
        message that is not in history. The text is permanently removed from all calls of the
        conversation. To redact a message that is in history, redact it in the history instead.
        """
        try:
            is_new = redact_sent(memory_id, n, place, **changed_by(request))
        except CallNotFound as error:
            raise Http404(str(error)) from error
        return response(RedactedSentSerializer, {"is_new": is_new})


class DroppedCallsSerializer(Json):
    why = serializers.CharField(
        help_text=f"The reason why the calls were not stored: one of {', '.join(DropReason)}."
    )
    sender = serializers.CharField(
        help_text="Where the calls came from or what was wrong, by reason: the instrumentation, "
        "path, encoding or error; empty if unknown."
    )
    count = serializers.IntegerField()
    last_at = serializers.DateTimeField()
    what = serializers.SerializerMethodField(
        help_text="The reason in words, which continue a sentence that begins with a number of "
        "calls, such as “3 calls”."
    )
    remedy = serializers.SerializerMethodField()

    def get_what(self, row: DroppedCalls) -> str:
        return REMEDIES[DropReason(row.why)].what

    def get_remedy(self, row: DroppedCalls) -> str:
        return REMEDIES[DropReason(row.why)].how


class DroppedListSerializer(Json):
    results = DroppedCallsSerializer(many=True)


class DroppedList(Resource):
    @reads(DroppedListSerializer, name="list_dropped_calls")
    def get(self, request: Request) -> Response:
        """List the calls that were not stored.

        Each entry is a number of calls with the same reason and sender. The newest entry comes
        first.
        """
        found = newest_dropped(prefix_of(request))
        return response(DroppedListSerializer, {"results": found})


_calls = "memories/<memory:memory_id>/calls/"

urlpatterns = [
    path("calls/dropped/", DroppedList.as_view(), name="dropped-calls"),
    path(_calls, CallList.as_view(), name="calls"),
    path(f"{_calls}<int:n>/", OneCall.as_view(), name="call"),
    path(
        f"{_calls}<int:n>/messages/<int:place>/redact/",
        SentRedaction.as_view(),
        name="redact-sent",
    ),
]
