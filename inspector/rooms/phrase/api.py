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
        max_length=1_000, help_text="The phrase to look for. Upper and lower case are equal."
    )
    at = serializers.IntegerField(
        min_value=0,
        max_value=NUMBER_MAX,
        required=False,
        help_text="The step after which memory is examined; by default the newest step.",
    )


class RememberedSerializer(Json):
    """Whether memory at a step has a phrase, and which messages contain it."""

    step = serializers.IntegerField()
    in_memory = serializers.BooleanField(
        help_text="Whether any message that the model sees at this step contains the phrase."
    )
    state = serializers.CharField(
        help_text=f"One of {', '.join(Remembered)}. `aside`: only a system message or the "
        "assistant's own messages in memory contain the phrase."
    )
    answer = serializers.CharField(
        help_text="The answer in words: whether memory has the phrase, and by which message the "
        "phrase left."
    )
    messages = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The seqs of the messages in memory at this step that contain the phrase.",
    )


class MemoryRemembers(Resource):
    @reads(RememberedSerializer, query=RememberedQuery, name="get_remembered")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Check whether memory has a phrase.

        Messages after the step `at` are ignored. If the phrase is a number that occurs only within
        a longer term, the answer names that term.
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
