"""The history: everything that was said."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import queries
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, addressed_by, reads
from chatmemory.api.responses import HistorySerializer, response
from chatmemory.api.views.base import Resource, with_query


@addressed_by(MEMORY_ID)
class MemoryHistory(Resource):
    @reads(HistorySerializer, query=requests.HistoryQuery, name="get_history")
    def get(self, request: Request, memory_id: str) -> Response:
        """Show what was said.

        Messages are ordered by seq. `earlier` and `later` are the pages beside this one.
        """
        asked = requests.read(requests.HistoryQuery, request.query_params)
        at = asked.pop("at", None)
        page = queries.history(memory_id, queries.Part(**asked), at)
        earlier = later = None
        if page.has_earlier:
            first = page.rows[0].seq
            earlier = with_query(request, before=first, after=None, around=None)
        if page.has_later:
            last = page.rows[-1].seq
            later = with_query(request, before=None, after=last, around=None)
        answer = {"messages": page.rows, "earlier": earlier, "later": later}
        return response(HistorySerializer, answer)
