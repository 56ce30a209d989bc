"""The REST API of incidents, and of the terms that a step's summary lost."""

from __future__ import annotations

from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import fields
from chatmemory.api.guard import Resource
from chatmemory.api.operations import Parameters, reads
from chatmemory.api.requests import Query
from chatmemory.api.responses import WHY_IT_LEFT, Json, response
from chatmemory.keeper import QUICK_MESSAGES
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
        help_text="Seq of the latest message that contained the fact: a user's message, or if "
        "there is none, a tool's."
    )
    left_step = serializers.IntegerField(
        help_text="The step at which the last message with the fact left memory."
    )
    cause = serializers.CharField(help_text=WHY_IT_LEFT)
    limit = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="The smallest limit from which every larger one would have held it just before "
        "`step`; null if none would, absent while it is not computed.",
    )
    limit_tried_every = serializers.IntegerField(
        required=False,
        help_text="The distance between the limits that were tried, if not every limit was tried.",
    )


class ForgottenFactSerializer(ForgottenSerializer):
    fact = serializers.CharField(help_text="The fact as the message spells it.")


class IncidentSerializer(Json):
    """The fields of an incident: a message that repeats facts or a tool call after they left
    memory.
    """

    kind = serializers.CharField(help_text=f"One of {', '.join(IncidentKind)}.")
    again = serializers.IntegerField(
        help_text="Seq of the message in which the fact came up again."
    )
    step = serializers.IntegerField(help_text="The step at which that message arrived.")
    forced = serializers.BooleanField(
        help_text="Whether the assistant had asked for one of the facts by name, or the user says "
        "that the fact was said before."
    )
    asked = serializers.IntegerField(
        allow_null=True, help_text="Seq of the assistant's message that asked for the fact by name."
    )
    facts = ForgottenFactSerializer(many=True, help_text="The best known first.")
    tool = serializers.CharField(required=False, help_text="What was called again.")
    same_result = serializers.BooleanField(
        required=False,
        help_text="Whether the tool call had the same result as the equal call before.",
    )
    result = ForgottenSerializer(
        required=False, help_text="The result of the earlier equal tool call."
    )
    tokens = serializers.IntegerField(
        required=False, help_text="Tokens of the result, if a tool call was made again."
    )


class IncidentsSerializer(Json):
    known_until = serializers.IntegerField(
        help_text="The step up to which the conversation was examined; 0 if it was not examined "
        "yet."
    )
    is_current = serializers.BooleanField(help_text="Whether that is the newest step.")
    incidents = IncidentSerializer(many=True)


class LostTermSerializer(Json):
    term = serializers.CharField()
    said = serializers.IntegerField(
        help_text="Seq of the latest replaced message of a user that said it, else of a tool, else "
        "of the assistant."
    )
    used = serializers.IntegerField(help_text="Seq of the message in which the assistant used it.")
    came = serializers.IntegerField(
        allow_null=True,
        help_text="Seq of the message by which it came back; null without a recorded mention.",
    )
    back = serializers.CharField(help_text=f"One of {', '.join(ReturnedBy)}.")
    is_told = serializers.BooleanField(
        help_text="Whether a user or a tool mentioned the term before the assistant did."
    )
    is_rare = serializers.BooleanField(
        help_text="Whether others mentioned it first, and at most two of the newest 200 "
        "conversations with a compaction have it."
    )


class NeededSerializer(Json):
    needed = serializers.IntegerField()
    held = serializers.IntegerField(
        help_text="Terms that the summary or the messages kept beside it hold."
    )
    appended = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many needed terms would be held if so many exact terms were appended to "
        "the summary.",
    )
    tail = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many needed terms the last so many tokens would hold if they were kept "
        "instead of the summary.",
    )


class EvidenceSerializer(Json):
    """The fields of a compaction's losses: exact terms that were needed after the summary.

    `told` are terms that users or tools gave to the assistant.
    """

    until = serializers.IntegerField(help_text="The step up to which the conversation was read.")
    replaced = serializers.IntegerField(help_text="How many messages.")
    tokens_before = serializers.IntegerField(allow_null=True)
    tokens_after = serializers.IntegerField(allow_null=True)
    left_out = serializers.CharField(
        allow_null=True, help_text="Why the compaction cannot be measured; null if it can."
    )
    level = serializers.CharField(
        help_text="The level that is shown first: rare, or told while fewer than five "
        "conversations have a compaction."
    )
    rare = NeededSerializer(help_text="Those of `told` that few conversations mention.")
    told = NeededSerializer(help_text="The terms without those that the assistant mentioned first.")
    all = NeededSerializer()
    lost = LostTermSerializer(
        many=True, help_text="The first 100 terms, in the order in which they were used."
    )
    lost_count = serializers.IntegerField()
    not_needed = serializers.IntegerField(
        help_text="How many other terms the summary does not hold."
    )

    def get_attribute(self, instance: Any) -> dict[str, Any] | None:
        """Return the fields of a compaction's losses. `instance` is the answer about a step; the
        result is None for other steps and while the losses are unknown.
        """
        if instance["kind"] != Step.Kind.COMPACT:
            return None
        shown = evidence_of(instance["memory_id"], instance["n"])
        return evidence_fields(shown) if shown else None


def evidence_fields(shown: ShownEvidence) -> dict[str, Any]:
    """Return the losses of a compaction as fields of the API."""
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


def _needed(found: NeededTerms, level: Level) -> dict[str, Any]:
    return {
        "needed": len(found.needed(level)),
        "held": found.held(level),
        "appended": {str(terms): found.held(level, terms) for terms in APPENDED},
        "tail": {str(tokens): found.in_tail(tokens, level) for tokens in TAILS},
    }


def evidence_of_a_step() -> EvidenceSerializer:
    """Return the serializer field for the losses of a step's compaction."""
    return EvidenceSerializer(
        allow_null=True,
        help_text="What the summary of a compaction lost; null for other steps, and until the "
        "compaction is examined.",
    )


class MemoryIncidents(Resource):
    @reads(IncidentsSerializer, query=IncidentsQuery, name="list_incidents")
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """List the facts that left memory and came up again.

        The incidents are in the order of their steps, and known up to the step `known_until`. In a
        long conversation, new incidents are found shortly after each change: until then
        `is_current` is false.
        """
        kind = parameters.get("kind")
        known = incidents_now(memory_id, QUICK_MESSAGES)
        found = [incident_to_dict(each) for each in known.incidents if kind in (None, each.kind)]
        answer = {"known_until": known.step, "is_current": known.is_current, "incidents": found}
        return response(IncidentsSerializer, answer)


urlpatterns = [
    path("memories/<memory:memory_id>/incidents/", MemoryIncidents.as_view(), name="incidents"),
]
