"""The history: everything that was said."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from chatmemory import queries
from chatmemory.api import requests
from chatmemory.api.operations import reads
from chatmemory.api.responses import HistorySerializer, response
from chatmemory.api.views.base import Resource


class MemoryHistory(Resource):
    @reads(HistorySerializer, query=requests.HistoryQuery)
    def get(self, request: Request, memory_id: str) -> Response:
        """Show what was said, ordered by seq; `earlier` and `later` are the pages beside it."""
        page = queries.history(
            memory_id, **requests.read(requests.HistoryQuery, request.query_params)
        )
        first, last = (page.rows[0].seq, page.rows[-1].seq) if page.rows else (0, 0)
        answer = {
            "messages": page.rows,
            "earlier": _page_url(request, "before", first) if page.has_earlier else None,
            "later": _page_url(request, "after", last) if page.has_later else None,
        }
        return response(HistorySerializer, answer)


def _page_url(request: Request, side: str, seq: int) -> str:
    """This page's URL, on one side of a message; size and step are kept."""
    url = request.build_absolute_uri()
    for name in ("before", "after", "around"):
        url = remove_query_param(url, name)
    return str(replace_query_param(url, side, seq))
