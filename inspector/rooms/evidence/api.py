"""The REST API of incidents, and of the terms that a step's summary lost."""

from __future__ import annotations

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import fields
from chatmemory.api.guard import Resource
from chatmemory.api.operations import reads
from chatmemory.api.requests import Parameters, Query
from chatmemory.api.responses import WHY_IT_LEFT, Json, response
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.models import Step
from chatmemory.recall.compactions import APPENDED, TAILS, Level, NeededTerms, ReturnedBy
from chatmemory.recall.incidents import incident_to_dict
from chatmemory.recall.kinds import FORMER, IncidentKind
from inspector.rooms.evidence.compactions import ShownEvidence, evidence_of
from inspector.rooms.evidence.incidents import incidents_now


class IncidentsQuery(Query):
    kind = fields.NameField(
        lambda: [kind.value for kind in IncidentKind],
        "Only incidents of this kind.",
        lambda name: FORMER.get(name, name),
    )


class ForgottenSerializer(Json):
    said = serializers.IntegerField(
        help_text="The seq of the latest earlier message with the fact: a user's message, or if "
        "no user said the fact, a tool result."
    )
    left_step = serializers.IntegerField(
        help_text="The step at which the last message in memory with the fact left memory."
    )
    cause = serializers.CharField(help_text=WHY_IT_LEFT)
    limit = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="The smallest limit from which on every limit would have kept the fact in "
        "memory until just before `step`. Null if no limit would; absent while not computed.",
    )
    limit_tried_every = serializers.IntegerField(
        required=False,
        help_text="The distance between two limits that were tried, in the unit of the limit. "
        "Absent if every limit was tried, and while `limit` is not computed.",
    )


class ForgottenFactSerializer(ForgottenSerializer):
    fact = serializers.CharField(help_text="The fact, spelled as in the message `said`.")


class IncidentSerializer(Json):
    """The fields of an incident. An incident is a message that repeats facts that had left memory,
    or that repeats a tool call whose result had left memory.
    """

    kind = serializers.CharField(help_text=f"One of {', '.join(IncidentKind)}.")
    again = serializers.IntegerField(
        help_text="The seq of the message that repeats the fact or the tool call."
    )
    step = serializers.IntegerField(help_text="The step at which message `again` arrived.")
    forced = serializers.BooleanField(
        help_text="Whether the user had to repeat a fact: the assistant had asked for it by name, "
        "or the user says that it was said before."
    )
    asked = serializers.IntegerField(
        allow_null=True,
        help_text="The seq of the assistant's message that asked for the fact by name; null if no "
        "message asked.",
    )
    facts = ForgottenFactSerializer(
        many=True, help_text="The repeated facts, the most recognizable first."
    )
    tool = serializers.CharField(
        required=False,
        help_text="The name of the tool that was called again; absent for other incidents.",
    )
    same_result = serializers.BooleanField(
        required=False,
        help_text="Whether the repeated tool call had the same result as the earlier, equal tool "
        "call. Absent for other incidents.",
    )
    result = ForgottenSerializer(
        required=False, help_text="The tool result of the earlier, equal tool call."
    )
    tokens = serializers.IntegerField(
        required=False, help_text="The number of tokens of the tool result that was fetched again."
    )


class IncidentsSerializer(Json):
    known_until = serializers.IntegerField(
        help_text="The newest step up to which incidents were searched; 0 while none were searched."
    )
    is_current = serializers.BooleanField(
        help_text="Whether `known_until` is the newest step of the conversation."
    )
    incidents = IncidentSerializer(many=True)


class LostTermSerializer(Json):
    term = serializers.CharField()
    said = serializers.IntegerField(
        help_text="The seq of the latest replaced message with the term: a user's message, else a "
        "tool result, else a message of the assistant."
    )
    used = serializers.IntegerField(
        help_text="The seq of the message in which the assistant used the term again."
    )
    came = serializers.IntegerField(
        allow_null=True,
        help_text="The seq of the message that gave the term back to the assistant; null if no "
        "recorded message did.",
    )
    back = serializers.CharField(help_text=f"One of {', '.join(ReturnedBy)}.")
    is_told = serializers.BooleanField(
        help_text="Whether a user or a tool mentioned the term before the assistant did."
    )
    is_rare = serializers.BooleanField(
        help_text="Whether a user or a tool mentioned the term first, and at most two of the "
        "newest 200 conversations with a compaction have the term."
    )


class NeededSerializer(Json):
    needed = serializers.IntegerField()
    held = serializers.IntegerField(
        help_text="The number of these needed terms that the summary, or the messages kept beside "
        "the summary, contain."
    )
    appended = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many needed terms memory would contain, by the number of exact terms "
        "appended to the summary.",
    )
    tail = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many needed terms memory would contain, by the number of last tokens kept "
        "instead of the summary.",
    )


class EvidenceSerializer(Json):
    """The fields of what a compaction lost. A term of the replaced messages is needed if the
    assistant used the term again after the summary. A needed term is lost if memory no longer had
    the term after the compaction.

    - `all` counts every needed term.
    - `told` counts the needed terms that a user or a tool mentioned before the assistant did.
    - `rare` counts the terms of `told` that few conversations mention.
    """

    until = serializers.IntegerField(
        help_text="The newest step up to which uses of the terms were searched."
    )
    replaced = serializers.IntegerField(
        help_text="The number of messages that the summary replaced."
    )
    tokens_before = serializers.IntegerField(allow_null=True)
    tokens_after = serializers.IntegerField(allow_null=True)
    left_out = serializers.CharField(
        allow_null=True,
        help_text="Why the losses of the compaction cannot be measured; null if they can.",
    )
    level = serializers.CharField(
        help_text="The group of terms that pages show first: `rare`, or `told` while fewer than "
        "five conversations have a compaction."
    )
    rare = NeededSerializer(
        help_text="The needed terms of `told` that at most two of the newest 200 conversations "
        "with a compaction mention."
    )
    told = NeededSerializer(
        help_text="The needed terms that a user or a tool mentioned before the assistant did."
    )
    all = NeededSerializer()
    lost = LostTermSerializer(
        many=True,
        help_text="The first 100 lost terms, in the order in which the assistant used them again.",
    )
    lost_count = serializers.IntegerField()
    not_needed = serializers.IntegerField(
        help_text="How many exact terms of the replaced messages the summary does not contain, "
        "although nobody has needed these terms."
    )

    def get_attribute(self, instance: JsonValue) -> JsonDict | None:
        """Return what a step's compaction lost, as fields of the API. None if the step is no
        compaction, or if its losses are not known yet.

        `instance` is the API's response about the step.
        """
        if instance["kind"] != Step.Kind.COMPACT:
            return None
        shown = evidence_of(instance["memory_id"], instance["n"])
        return evidence_fields(shown) if shown else None


def evidence_fields(shown: ShownEvidence) -> JsonDict:
    """Return what a compaction lost, as fields of the API."""
    found, terms = shown.evidence, shown.terms
    return {
        **found._asdict(),
        "until": shown.until,
        "left_out": found.why_left_out,
        "level": shown.level.value,
        **{level.value: _needed(terms, level) for level in Level},
        "lost": shown.listed,
        "lost_count": len(terms.lost()),
        "not_needed": found.not_needed,
    }


def _needed(found: NeededTerms, level: Level) -> JsonDict:
    return {
        "needed": len(found.needed(level)),
        "held": found.held(level),
        "appended": {str(terms): found.held(level, terms) for terms in APPENDED},
        "tail": {str(tokens): found.in_tail(tokens, level) for tokens in TAILS},
    }


def evidence_of_a_step() -> EvidenceSerializer:
    """Return a serializer for what a step's compaction lost."""
    return EvidenceSerializer(
        allow_null=True,
        help_text="What the summary of a compaction lost; null for other steps, and until the "
        "compaction is examined.",
    )


class MemoryIncidents(Resource):
    @reads(IncidentsSerializer, query=IncidentsQuery, name="list_incidents")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """List the incidents of a conversation, sorted by step.

        An incident is a message that repeats facts that had left memory, or that repeats a tool
        call whose result had left memory.

        `known_until` is the last step that was searched for incidents. In a conversation with more
        than 500 messages, the newest steps may not be searched yet. Then `is_current` is false.
        """
        kind = parameters.get("kind")
        known = incidents_now(memory_id, QUICK_MESSAGES)
        found = [incident_to_dict(each) for each in known.incidents if kind in (None, each.kind)]
        answer = {"known_until": known.step, "is_current": known.is_current, "incidents": found}
        return response(IncidentsSerializer, answer)


urlpatterns = [
    path("memories/<memory:memory_id>/incidents/", MemoryIncidents.as_view(), name="incidents"),
]
