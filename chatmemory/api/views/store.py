"""The ChatMemoryStore protocol over HTTP: a bare array of LangChain4j's JSON in and out."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import requests
from chatmemory.api.components import MESSAGES, ref
from chatmemory.api.operations import MEMORY_ID, addressed_by, changes, reads
from chatmemory.api.views.base import Resource, whole_json
from chatmemory.core.codec import message_to_dict
from chatmemory.services import protocol
from chatmemory.services.validation import check_id
from chatmemory.streaming import json_list


@addressed_by(MEMORY_ID)
class Store(Resource):
    @reads(MESSAGES, name="get_messages")
    def get(self, request: Request, memory_id: str) -> HttpResponse:
        """getMessages: the messages in memory.

        A lowered limit does not hide any. An unknown id has none: `[]`.
        """
        messages = protocol.get_messages(check_id(memory_id))
        return whole_json(json_list(map(message_to_dict, messages)))

    @changes(
        None, status=204, body={"application/json": ref("MessageList")}, name="update_messages"
    )
    def put(self, request: Request, memory_id: str) -> Response:
        """updateMessages: replaces the whole list.

        An unknown id is created.
        """
        messages = requests.read_list(request).messages
        protocol.update_messages(memory_id, messages, **requests.changed_by(request))
        return Response(status=204)

    @changes(None, status=204, name="delete_messages")
    def delete(self, request: Request, memory_id: str) -> Response:
        """deleteMessages: clears the window.

        The history stays.
        """
        protocol.delete_messages(memory_id, **requests.changed_by(request))
        return Response(status=204)
