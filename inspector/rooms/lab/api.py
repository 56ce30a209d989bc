"""The REST API of recall: which needed facts other policies would have held, for stored
conversations or for conversations in a request.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.advice import Verdict, answer_of
from chatmemory.advice.recalls import Recalls, kind_to_try, tried_for
from chatmemory.api import fields
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import reads
from chatmemory.api.requests import Body, Parameters, Query
from chatmemory.api.responses import Json, response
from chatmemory.conf import fact_words
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.cost import Prices, providers, rules_of
from chatmemory.roles import READ
from chatmemory.windows.written_policies import text_of_policy
from inspector.rooms.lab.stored import READ_AT_ONCE, recall_of_stored
from inspector.shell.advice import goals_in_use


def _price(help_text: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=12, decimal_places=6, min_value=Decimal(0), required=False, help_text=help_text
    )


def _text(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, help_text=help_text)


class _Priced(serializers.Serializer[Any]):  # it reads, and has no row
    """Prices of prompts, and the provider with the cache."""

    input = _price("The price of a million input tokens.")
    cached = _price(
        "The price of a million input tokens that the provider reads from its prompt cache."
    )
    write = _price(
        "The price of a million input tokens that the provider writes to its prompt cache."
    )
    provider = fields.CacheField(
        providers,
        "The provider whose prompt cache is used: its shortest prompt, step size and lifetime. "
        "Without a provider, every shared prefix counts as cached.",
    )


class RecallRequest(_Priced, Body):
    """The body of a request: conversations as lists of messages in one `format`, and the policies
    to measure.
    """

    conversations = serializers.ListField(
        child=fields.MessagesField(),
        help_text="The conversations, each a list of messages. All lists together can have as "
        "many messages as a single list.",
        error_messages={
            "not_a_list": (
                "must be a list of conversations, and each conversation a list of messages"
            ),
        },
    )
    format = fields.FormatField()
    policies = fields.PoliciesField()

    def validate(self, attrs: JsonValue) -> JsonValue:
        """Return the request with `said` added: the messages of each conversation. Raises
        InvalidField, which names the invalid conversation.
        """
        attrs["said"], before = [], 0
        for number, values in enumerate(attrs["conversations"]):
            field = f"conversations[{number}]"
            sent = fields.read_messages(values, attrs["format"], field, before=before)
            attrs["said"].append(sent.messages)
            before += len(sent.messages)
        return attrs


class RecallQuery(_Priced, Query):
    label = _text(  # type: ignore[assignment]  # the name of a field hides an attribute of the class
        "Only conversations with this label, as `name` or `name:value`."
    )
    prefix = _text("Only conversations whose id begins with this text.")
    policies = fields.PoliciesField()


class RecallRowSerializer(Json):
    """The figures of one policy: how many needed facts it would have held, and its cost."""

    policy = serializers.SerializerMethodField(
        help_text="The policy of the request, written with all options that differ from their "
        "defaults."
    )
    conversations = serializers.IntegerField()
    recalls = serializers.IntegerField(
        help_text="The number of needed facts: facts that the assistant used again, messages that "
        "users repeated, and tool calls made again."
    )
    held = serializers.IntegerField(
        help_text="The number of needed facts that were in memory when they were needed."
    )
    nothing_lost = serializers.IntegerField(
        help_text="The number of conversations in which all needed facts were in memory."
    )
    user_repeated = serializers.IntegerField(
        help_text="The number of messages in which users repeated something that had left memory."
    )
    call_repeated = serializers.IntegerField(
        help_text="The number of tool results that were fetched again after they had left memory."
    )
    prompt_tokens = serializers.IntegerField()
    calls = serializers.IntegerField(
        help_text="The number of model calls: the messages of the assistant."
    )
    reusable_tokens = serializers.IntegerField(
        help_text="The number of prompt tokens in the prefix shared with the previous prompt."
    )
    read_tokens = serializers.IntegerField(
        help_text="The number of prompt tokens that the provider would read from its prompt cache."
    )
    written_tokens = serializers.IntegerField(
        help_text="The number of prompt tokens that the provider would write to its prompt cache: "
        "not read from it, in prompts long enough for the cache."
    )
    by_index = serializers.IntegerField(
        help_text="The number of needed facts that had left memory, but that the index named. "
        "`held` does not count them."
    )
    relative_cost = serializers.FloatField(
        allow_null=True,
        help_text="The cost of the prompts, divided by the cost of sending everything. The mean "
        "over conversations, each with the same weight. Null without any prompt.",
    )
    priced = serializers.CharField(
        help_text="`cache` if a cached price was given, so that costs are compared; `tokens` if "
        "tokens are compared."
    )

    def get_policy(self, row: JsonValue) -> str:
        return text_of_policy(row["policy"])


class MeasuredSerializer(Json):
    """How many conversations were measured for the advice, and which conversations were left out
    and why.
    """

    conversations = serializers.IntegerField(
        help_text="The number of conversations that were counted, each with the same weight."
    )
    of = serializers.IntegerField(
        help_text="The number of conversations that the request chose, counted or left out."
    )
    left_out = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The number of conversations that were left out, by reason, such as `outlier`.",
    )
    messages = serializers.IntegerField(help_text="The number of messages that were replayed.")
    said = serializers.IntegerField(
        help_text="The number of all messages of the counted conversations."
    )
    in_part = serializers.IntegerField(
        help_text="The number of long conversations of which only the newest messages were "
        "replayed."
    )
    calls = serializers.IntegerField(
        help_text="The number of model calls among the replayed messages: the messages of the "
        "assistant."
    )
    prices = serializers.CharField(help_text="Whose prices, or `tokens`.")
    rules = serializers.CharField(
        help_text="The version of the rules that decide what a needed fact is."
    )


class RecallSerializer(Json):
    results = RecallRowSerializer(many=True)
    recommended = serializers.CharField(
        allow_null=True,
        help_text="The recommended policy of all policies that were tried, or `everything`; null "
        "if no advice is possible.",
    )
    verdict = serializers.CharField(
        help_text=f"What to do about the policy in force: one of {', '.join(Verdict)}."
    )
    why = serializers.CharField(
        help_text="The advice in one sentence, with the effect that it would have."
    )
    measured = MeasuredSerializer(help_text="What the advice was measured on.")


def recall_answer(found: Recalls, prices: Prices) -> JsonDict:
    """Return the API's answer: the figures of each policy with their cost, and the advice."""
    advice = found.advice(prices, goals_in_use())
    costs = found.relative_costs(advice)
    rows = [
        {**vars(row), "relative_cost": cost, "priced": prices.priced}
        for row, cost in zip(found.rows, costs, strict=True)
    ]
    return {"results": rows, **answer_of(advice)}


class RecallOf(Resource):
    needs = {"POST": READ}

    @reads(RecallSerializer, query=RecallQuery, name="get_recall")
    def get(self, request: Request, parameters: Parameters) -> Response:
        """Measure policies on stored conversations.

        For each policy, the answer has the number of needed facts, and how many of these facts the
        policy would have held. If the conversations together have more than 20,000 messages, the
        answer is an error.
        """
        policies, own = parameters.pop("policies"), prefix_of(request)
        prices, rules = _prices(parameters), rules_of(parameters.pop("provider", ""))
        prefix = parameters.pop("prefix", "")
        if not (prefix.startswith(own) or own.startswith(prefix)):
            return _recalls(Recalls(policies, rules), prices)
        which = MemoryFilter(**parameters, id_prefix=max(prefix, own, key=len))
        with field_at_fault("prefix"):
            found = recall_of_stored(which, policies, READ_AT_ONCE, rules)
        return _recalls(found, prices)

    @reads(RecallSerializer, body=RecallRequest, name="recall")
    def post(self, request: Request, parameters: Parameters) -> Response:
        """Measure policies on the conversations sent.

        For each policy, the answer has the number of needed facts, and how many of these facts the
        policy would have held. Nothing is stored.
        """
        policies, rules = parameters["policies"], rules_of(parameters.get("provider", ""))
        conversations = parameters["said"]
        found = Recalls(policies, rules)
        tried = tried_for(kind_to_try(policies), policies, rules)
        for number, each in enumerate(conversations, 1):
            found.add_said(str(number), each, tried, fact_words())
        return _recalls(found, _prices(parameters))


def _prices(parameters: Parameters) -> Prices:
    with field_at_fault("cached"):
        return Prices(*(parameters.pop(name, None) for name in ("input", "cached", "write")))


def _recalls(found: Recalls, prices: Prices) -> Response:
    return response(RecallSerializer, recall_answer(found, prices))


urlpatterns = [path("recall/", RecallOf.as_view(), name="recall")]
