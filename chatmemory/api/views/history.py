"""Views of the history, which has all messages, and of the ledger, which has all changes."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import requests
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import reads
from chatmemory.api.requests import Parameters
from chatmemory.api.responses import (
    HistorySerializer,
    QuotesSerializer,
    StepDetailSerializer,
    StepsSerializer,
    response,
    with_query,
)
from chatmemory.exceptions import MemoryNotFound
from chatmemory.explain import captions, receipts
from chatmemory.messages.quotes import Query
from chatmemory.reading import steps
from chatmemory.reading.history import Part, history
from chatmemory.reading.quoting import search_history


class MemoryHistory(Resource):
    @reads(HistorySerializer, query=requests.HistoryQuery, name="get_history")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Show the history.

        Messages are ordered by seq. `earlier` and `later` are the URLs of the adjacent pages.
        """
        at = parameters.pop("at", None)
        page = history(memory_id, Part(**parameters), at)
        earlier = later = None
        if page.earlier:
            first = page.rows[0].seq
            earlier = with_query(request, before=first, after=None, around=None)
        if page.later:
            last = page.rows[-1].seq
            later = with_query(request, before=None, after=last, around=None)
        answer = {"messages": page.rows, "earlier": earlier, "later": later}
        return response(HistorySerializer, answer)


class SearchHistory(Resource):
    @reads(QuotesSerializer, query=requests.SearchHistoryQuery, name="search_history")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Search the history of a conversation.

        Returns quotes from the messages that match the query. Messages that left memory come first.
        `notice` tells the model that quotes are data, not instructions.
        """
        return _quotes(memory_id, parameters)


class SearchOwnHistory(Resource):
    @reads(QuotesSerializer, query=requests.SearchHistoryQuery, name="search_own_history")
    def get(self, request: Request, parameters: Parameters) -> Response:
        """Search the history of the API token's conversation.

        An API token can be limited to conversations whose ids begin with a prefix. Here, the prefix
        must be the whole id of the conversation. No other conversation can be searched. Without
        such a token, the response is 404.
        """
        memory_id = prefix_of(request)
        if not memory_id:
            raise MemoryNotFound(
                "this token is not limited to one conversation: create a token "
                "whose prefix is the id of the conversation"
            )
        return _quotes(memory_id, parameters)


def _quotes(memory_id: str, parameters: Parameters) -> Response:
    query = Query.of(parameters["query"], parameters["limit"])
    return response(QuotesSerializer, search_history(memory_id, query).to_dict())


class MemorySteps(Resource):
    @reads(StepsSerializer, query=requests.StepsQuery, name="list_steps")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """List the steps.

        The steps are in the order in which they happened. `later` is the URL of the next page.
        """
        size = parameters["size"]
        rows = steps.steps(memory_id, after=parameters.get("after", 0), size=size + 1)
        later = with_query(request, after=rows[size - 1].n) if len(rows) > size else None
        return response(StepsSerializer, {"steps": rows[:size], "later": later})


class MemoryStep(Resource):
    @reads(StepDetailSerializer, query=requests.StepQuery, name="get_step")
    def get(self, request: Request, memory_id: str, n: int, parameters: Parameters) -> Response:
        """Show one step.

        Returns the seqs of the messages that arrived, and the evicted messages with the reasons. If
        these lists are longer than a page, `later` is the URL of the next page. `receipt` shows
        line by line how the size of memory changed.

        If the room `evidence` is installed, `evidence` has the exact terms that a summary lost.
        """
        start = parameters.get("after", 0)
        end = start + parameters["size"]
        step = steps.step(memory_id, n)
        arrived, evicted = step.change.arrived, step.change.evicted
        has_more = end < max(len(arrived), len(evicted))
        answer = {
            **vars(step.row),
            "memory_id": memory_id,
            "summary": captions.caption(step.change, step.row.note).summary,
            "arrived": [each.seq for each in arrived[start:end]],
            "arrived_count": len(arrived),
            "evicted": evicted[start:end],
            "evicted_count": len(evicted),
            "later": with_query(request, after=end) if has_more else None,
            "receipt": receipts.shortened(receipts.receipt(step.change)),
        }
        return response(StepDetailSerializer, answer)
