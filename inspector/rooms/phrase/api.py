"""The REST API that tells whether memory has a phrase."""

from __future__ import annotations

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api.guard import Resource
from chatmemory.api.operations import reads
from chatmemory.api.requests import NUMBER_MAX, Parameters, Query
from chatmemory.api.responses import Json, response
from inspector.conversation.state import conversation_state
from inspector.rooms.phrase.answers import remembered
from inspector.rooms.phrase.matches import Remembered
from inspector.rooms.phrase.searching import search_for
from inspector.shell.state import ConversationQuery


class RememberedQuery(Query):
    phrase = serializers.CharField(
        max_length=1_000, help_text="What is looked for; case is ignored."
    )
    at = serializers.IntegerField(
        min_value=0,
        max_value=NUMBER_MAX,
        required=False,
        help_text="The step of the question; by default the newest.",
    )


class RememberedSerializer(Json):
    """Whether memory at a step has a phrase, and which messages contain it."""

    step = serializers.IntegerField()
    in_memory = serializers.BooleanField(
        help_text="Whether a message that the model sees contains the phrase."
    )
    state = serializers.CharField(
        help_text=f"One of {', '.join(Remembered)}: it is aside where only a system message or the "
        "assistant's own words contain it."
    )
    answer = serializers.CharField(
        help_text="The same in words, and the message that drove it out."
    )
    messages = serializers.ListField(
        child=serializers.IntegerField(), help_text="Seqs of the messages that contain it there."
    )


class MemoryRemembers(Resource):
    @reads(RememberedSerializer, query=RememberedQuery, name="get_remembered")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Check whether memory has a phrase.

        Messages after the step are ignored. If a number occurs only within a longer term, the
        answer names that term.
        """
        state = conversation_state(memory_id, ConversationQuery(at=parameters.get("at")))
        search = search_for(state, parameters["phrase"])
        found, places = remembered(search), search.matches.visible_mentions(state.window.hidden)
        answer = {
            "step": state.step.n,
            "in_memory": found.state is not Remembered.NOT_IN_MEMORY,
            "state": found.state,
            "answer": found.summary,
            "messages": sorted(seq for seqs in places.values() for seq in seqs),
        }
        return response(RememberedSerializer, answer)


urlpatterns = [
    path("memories/<memory:memory_id>/remembers/", MemoryRemembers.as_view(), name="remembers"),
]
