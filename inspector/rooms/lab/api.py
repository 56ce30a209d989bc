"""The recall under other policies, of stored conversations and of conversations in a request."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.access.roles import READ
from chatmemory.api import fields
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import Parameters, reads
from chatmemory.api.requests import Body, Query
from chatmemory.api.responses import Json, response
from chatmemory.conf import fact_words
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall import RecallSums, histories_for, recall_sums
from chatmemory.recall.cost import Prices, providers, rules_of
from chatmemory.windows.written_policies import text_of_policy
from inspector.rooms.lab.stored import READ_AT_ONCE, recall_of_stored


def _price(help_text: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=12, decimal_places=6, min_value=Decimal(0), required=False, help_text=help_text
    )


def _text(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, help_text=help_text)


class _Priced(serializers.Serializer[Any]):
    """Prices of prompts, and the provider with the cache."""

    input = _price("The price of a million input tokens.")
    cached = _price("The price of a million input tokens that are read from the provider's cache.")
    write = _price("The price of a million tokens that are written to it.")
    provider = fields.CacheField(
        providers, "Whose cache it is: its least length, steps and life; by default no bounds."
    )


class RecallRequest(_Priced, Body):
    """Conversations in one of the formats, and policies to compare."""

    conversations = serializers.ListField(
        child=fields.MessagesField(),
        help_text="Lists of messages, in all as many as one list may have.",
        error_messages={
            "not_a_list": "must be a list of conversations, each a list of messages",
        },
    )
    format = fields.FormatField()
    policies = fields.PoliciesField()

    def validate(self, attrs: Any) -> Any:
        """Adds `said`, the messages of each conversation. Raises InvalidField with the invalid
        one's place.
        """
        attrs["said"], before = [], 0
        for number, values in enumerate(attrs["conversations"]):
            field = f"conversations[{number}]"
            sent = fields.read_messages(values, attrs["format"], field, before=before)
            attrs["said"].append(sent.messages)
            before += len(sent.messages)
        return attrs


class RecallQuery(_Priced, Query):
    label = _text(  # type: ignore[assignment]
        "A label, as `name` or `name:value`."
    )
    prefix = _text("The beginning of the ids.")
    policies = fields.PoliciesField()


class RecallRowSerializer(Json):
    """The recall under one policy."""

    policy = serializers.SerializerMethodField(help_text="As it was asked for.")
    conversations = serializers.IntegerField()
    recalls = serializers.IntegerField(
        help_text="Facts that the assistant used again, and messages in which users or calls had "
        "to repeat something."
    )
    held = serializers.IntegerField(help_text="Those that were in the window then.")
    nothing_lost = serializers.IntegerField(help_text="Conversations that held all of them.")
    user_repeated = serializers.IntegerField(
        help_text="Messages in which users repeated something that was forgotten by then."
    )
    call_repeated = serializers.IntegerField(
        help_text="Results that were fetched again and forgotten then."
    )
    prompt_tokens = serializers.IntegerField()
    calls = serializers.IntegerField(help_text="AI messages.")
    reusable_tokens = serializers.IntegerField(
        help_text="Prompt tokens that begin like the previous call's prompt."
    )
    read_tokens = serializers.IntegerField(
        help_text="Those of them that are read from the provider's cache."
    )
    written_tokens = serializers.IntegerField(
        help_text="Prompt tokens that are not, of prompts that are long enough for the cache."
    )
    relative_cost = serializers.FloatField(
        allow_null=True,
        help_text="Of the prompts: 1.0 is sending everything. Null without any prompt.",
    )
    priced = serializers.CharField(
        help_text="`cache` where a cached price was given; else `tokens` are compared."
    )

    def get_policy(self, row: Any) -> str:
        return text_of_policy(row["policy"])


class RecallSerializer(Json):
    results = RecallRowSerializer(many=True)
    recommended = serializers.CharField(
        allow_null=True,
        help_text="The policy of `results`, or `everything`, that is worth its cost; null if no "
        "advice is possible.",
    )
    why = serializers.CharField(help_text="Why it is, in a sentence.")


def recall_answer(found: RecallSums, prices: Prices) -> dict[str, Any]:
    """Return the sums of policies with their cost, and the recommended policy."""
    rows = [
        {
            **vars(row),
            "relative_cost": row.relative_cost(prices),
            "priced": prices.priced,
        }
        for row in found.rows
    ]
    pick, why = found.recommended(prices)
    return {"results": rows, "recommended": pick, "why": why}


class RecallOf(Resource):
    needs = {"POST": READ}

    @reads(RecallSerializer, query=RecallQuery, name="get_recall")
    def get(self, request: Request, parameters: Parameters) -> Response:
        """Measure policies on stored conversations.

        The share of the facts that the assistant needed which each policy would have held, in up to
        20,000 messages.
        """
        policies, own = parameters.pop("policies"), prefix_of(request)
        prices, rules = _prices(parameters), rules_of(parameters.pop("provider", ""))
        prefix = parameters.pop("prefix", "")
        if not (prefix.startswith(own) or own.startswith(prefix)):
            return _recalls(recall_sums([], policies), prices)
        which = MemoryFilter(**parameters, id_prefix=max(prefix, own, key=len))
        with field_at_fault("prefix"):
            found = recall_of_stored(which, policies, READ_AT_ONCE, rules)
        return _recalls(found, prices)

    @reads(RecallSerializer, body=RecallRequest, name="recall")
    def post(self, request: Request, parameters: Parameters) -> Response:
        """Measure policies on the conversations sent.

        The share of the facts that the assistant needed which each policy would have held. Nothing
        is stored.
        """
        policies, rules = parameters["policies"], rules_of(parameters.get("provider", ""))
        conversations = parameters["said"]
        histories = (histories_for(each, policies, fact_words()) for each in conversations)
        return _recalls(recall_sums(histories, policies, rules), _prices(parameters))


def _prices(parameters: Parameters) -> Prices:
    with field_at_fault("cached"):
        return Prices(*(parameters.pop(name, None) for name in ("input", "cached", "write")))


def _recalls(found: RecallSums, prices: Prices) -> Response:
    return response(RecallSerializer, recall_answer(found, prices))


urlpatterns = [path("recall/", RecallOf.as_view(), name="recall")]
