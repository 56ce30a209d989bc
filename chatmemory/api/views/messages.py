"""The window: the messages that the model sees. Show, add, replace and clear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import queries, services
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, addressed_by, changes, reads
from chatmemory.api.responses import (
    ChangesSerializer,
    LossSerializer,
    MessageChangesSerializer,
    WindowHeadSerializer,
    WindowSerializer,
    etag,
    response,
)
from chatmemory.api.sent_messages import SentMessages
from chatmemory.api.views.base import Resource, whole_json
from chatmemory.conf import PAGE_MAX
from chatmemory.formats import Rendering, render_each
from chatmemory.queries import WindowRow, WindowView
from chatmemory.services import ChangeResult
from chatmemory.streaming import json_list


@addressed_by(MEMORY_ID)
class MemoryMessages(Resource):
    @reads(WindowSerializer, query=requests.WindowQuery, name="get_window")
    def get(self, request: Request, memory_id: str) -> HttpResponse:
        """Show what the model sees.

        The window as it is now or was after a step, always complete.
        """
        asked = requests.read(requests.WindowQuery, request.query_params)
        window = queries.window(memory_id, asked.get("at"))
        answer = whole_json(_window(window, render_each(window.messages, asked["as"])))
        if "at" not in asked:
            # the newest step is the version
            answer["ETag"] = etag(window.step)
        return answer

    @changes(MessageChangesSerializer, status=201, body=requests.AddRequest, name="add_messages")
    def post(self, request: Request, memory_id: str) -> Response:
        """Add messages.

        Each is a step of its own, and the policy evicts what exceeds it. All are stored or none.
        """
        body = requests.read_body(requests.AddRequest, request)
        with body["sent"].named_in_errors():
            results = services.add(memory_id, body["new"], **requests.changed_by(request))
        return _changes(memory_id, results, body["sent"], status=201)

    @changes(MessageChangesSerializer, body=requests.MessagesRequest, name="set_window")
    def put(self, request: Request, memory_id: str) -> Response:
        """Replace the window.

        What the list adds becomes part of the history, and the policy evicts what exceeds it.
        """
        body = requests.read_body(requests.MessagesRequest, request)
        sent = body["sent"]
        with sent.named_in_errors():
            result = services.set_messages(memory_id, sent.messages, **requests.changed_by(request))
        return _changes(memory_id, [result], sent)

    @changes(ChangesSerializer, name="clear_window")
    def delete(self, request: Request, memory_id: str) -> Response:
        """Clear the window.

        The history stays.
        """
        result = services.clear_messages(memory_id, **requests.changed_by(request))
        return _changes(memory_id, [result])


def _window(window: WindowView[WindowRow], rendering: Rendering) -> Iterator[str]:
    """The JSON of a window. What the format lost is known after the messages."""
    answer = {
        "step": window.step,
        "policy": window.policy,
        "seqs": [row.seq for row in window.rows],
        "totals": window.totals,
        "load": window.load,
        "limit": window.policy.limit if window.policy else None,
        "pinned": [row.seq for row in window.rows if row.pinned],
        "over_limit": [row.seq for row in window.over_limit],
    }
    yield _json(WindowHeadSerializer(answer)).removesuffix("}") + ',"messages":'
    yield from json_list(rendering.values)
    yield ',"lost":' + _json(LossSerializer(rendering.losses[:PAGE_MAX], many=True)) + "}"


def _json(serializer: Any) -> str:
    return JSONRenderer().render(serializer.data).decode()


def _changes(
    memory_id: str,
    results: Sequence[ChangeResult],
    sent: SentMessages | None = None,
    status: int = 200,
) -> Response:
    """The version is the last step of these changes, or the current one if all were ignored."""
    version = max((each.step for each in results if each.step), default=None)
    if version is None:
        version = queries.memory(memory_id).version
    answer: dict[str, Any] = {"version": version, "changes": results}
    if sent is None:
        return response(ChangesSerializer, answer, status=status, version=version)
    answer["lost"] = sent.losses[:PAGE_MAX]
    return response(MessageChangesSerializer, answer, status=status, version=version)
