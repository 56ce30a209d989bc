"""The window: the messages that the model sees. Show, add, replace and clear."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import queries, services
from chatmemory.api import requests
from chatmemory.api.operations import changes, reads
from chatmemory.api.responses import ChangesSerializer, WindowSerializer, response
from chatmemory.api.views.base import Resource
from chatmemory.formats import render_messages
from chatmemory.services import ChangeResult


class MemoryMessages(Resource):
    whole_windows = ("PUT",)

    @reads(WindowSerializer, query=requests.WindowQuery, name="window")
    def get(self, request: Request, memory_id: str) -> Response:
        """Show what the model sees, now or after a step."""
        asked = requests.read(requests.WindowQuery, request.query_params)
        window = queries.window(memory_id, asked.get("at"))
        rendered = render_messages(window.messages, asked["as"])
        answer = {
            "step": window.step,
            "policy": window.policy,
            "messages": rendered.value,
            "seqs": [row.seq for row in window.rows],
            "totals": window.totals,
            "load": window.load,
            "limit": window.policy.limit if window.policy else None,
            "over_limit": [row.seq for row in window.over_limit],
            "lost": rendered.losses,
        }
        return response(WindowSerializer, answer)

    @changes(ChangesSerializer, status=201, body=requests.MessagesRequest)
    def post(self, request: Request, memory_id: str) -> Response:
        """Add messages, one step each; all of them are stored or none."""
        body = requests.read(requests.MessagesRequest, request.data)
        results = services.add(memory_id, body["new"], **requests.changed_by(request))
        return _changes(memory_id, results, status=201)

    @changes(ChangesSerializer, body=requests.MessagesRequest)
    def put(self, request: Request, memory_id: str) -> Response:
        """Replace the window; the policy evicts what exceeds it."""
        body = requests.read(requests.MessagesRequest, request.data)
        messages = [each.message for each in body["new"]]
        result = services.set_messages(memory_id, messages, **requests.changed_by(request))
        return _changes(memory_id, [result])

    @changes(ChangesSerializer)
    def delete(self, request: Request, memory_id: str) -> Response:
        """Clear the window; the history stays."""
        result = services.clear_messages(memory_id, **requests.changed_by(request))
        return _changes(memory_id, [result])


def _changes(memory_id: str, results: Sequence[ChangeResult], status: int = 200) -> Response:
    """The version is the last step of these changes, or the current one if all were ignored."""
    version = max((each.step for each in results if each.step), default=None)
    if version is None:
        version = queries.memory(memory_id).version
    answer = {"version": version, "changes": results}
    return response(ChangesSerializer, answer, status=status, version=version)
