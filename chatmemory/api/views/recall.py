"""The recall under other policies, of stored conversations and of conversations in a request."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.access.roles import READ
from chatmemory.api import requests
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import Parameters, reads
from chatmemory.api.responses import RecallSerializer, recall_answer, response
from chatmemory.conf import fact_words
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import READ_AT_ONCE, recall_of_stored
from chatmemory.recall import RecallSums, histories_for, recall_sums
from chatmemory.recall.cost import Prices, rules_of


class RecallOf(Resource):
    needs = {"POST": READ}

    @reads(RecallSerializer, query=requests.RecallQuery, name="get_recall")
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

    @reads(RecallSerializer, body=requests.RecallRequest, name="recall")
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
