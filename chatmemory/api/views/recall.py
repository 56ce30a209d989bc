"""The recall under other policies, of stored conversations and of conversations in a request."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.access.roles import READ
from chatmemory.api import requests
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import Asked, reads
from chatmemory.api.responses import RecallSerializer, recall_answer, response
from chatmemory.conf import fact_words
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import READ_AT_ONCE, recall_of_stored
from chatmemory.recall import RecallSums, histories_for, recall_sums
from chatmemory.recall.cost import Prices, rules_of


class RecallOf(Resource):
    needs = {"POST": READ}

    @reads(RecallSerializer, query=requests.RecallQuery, name="get_recall")
    def get(self, request: Request, asked: Asked) -> Response:
        """Measure policies on stored conversations.

        The share of the facts that the assistant needed which each policy would have held, in up to
        20,000 messages.
        """
        policies, own = asked.pop("policies"), prefix_of(request)
        prices, rules = _prices(asked), rules_of(asked.pop("provider", ""))
        prefix = asked.pop("prefix", "")
        if not (prefix.startswith(own) or own.startswith(prefix)):
            return _recalls(recall_sums([], policies), prices)
        which = MemoryFilter(**asked, id_prefix=max(prefix, own, key=len))
        with field_at_fault("prefix"):
            found = recall_of_stored(which, policies, READ_AT_ONCE, rules)
        return _recalls(found, prices)

    @reads(RecallSerializer, body=requests.RecallRequest, name="recall")
    def post(self, request: Request, asked: Asked) -> Response:
        """Measure policies on the conversations sent.

        The share of the facts that the assistant needed which each policy would have held. Nothing
        is stored.
        """
        policies, rules = asked["policies"], rules_of(asked.get("provider", ""))
        histories = (histories_for(said, policies, fact_words()) for said in asked["said"])
        return _recalls(recall_sums(histories, policies, rules), _prices(asked))


def _prices(asked: Asked) -> Prices:
    with field_at_fault("cached"):
        return Prices(*(asked.pop(name, None) for name in ("input", "cached", "write")))


def _recalls(found: RecallSums, prices: Prices) -> Response:
    return response(RecallSerializer, recall_answer(found, prices))
