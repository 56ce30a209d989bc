"""The REST API of the doctor: conversations that providers in use would reject."""

from __future__ import annotations

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import fields
from chatmemory.api.errors import field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import reads
from chatmemory.api.requests import Parameters, Query
from chatmemory.api.responses import AddressField, Json, response, with_query
from chatmemory.lint import PROVIDERS
from inspector.rooms.doctor.diagnosis import listed_rules
from inspector.rooms.doctor.reads import IllFilter, doctor_counts, doctor_page


class DoctorQuery(Query):
    provider = fields.NameField(
        lambda: PROVIDERS,
        "Only conversations that this provider would reject. Without it, conversations that any "
        "provider in use would reject.",
    )
    rule = fields.NameField(listed_rules, "Only conversations that break this rule.")
    size = fields.PageSizeField()
    cursor = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="The cursor of a page, taken from `next` or `previous`.",
    )


class ProblemOfWindowSerializer(Json):
    rule = serializers.CharField(help_text="The id of the rule, which docs/rules.md explains.")
    since = serializers.IntegerField(
        allow_null=True,
        help_text="The step since which the window breaks this rule; null if unknown.",
    )
    seq = serializers.IntegerField(
        help_text="The seq of the message that breaks the rule. 0 if the window as a whole breaks "
        "it."
    )
    refused_by = serializers.ListField(child=serializers.CharField())
    mishandled_by = serializers.ListField(child=serializers.CharField())


class IllSerializer(Json):
    id = serializers.CharField(source="memory.id")
    address = AddressField(
        source="memory.id", read_only=True, help_text="The id, encoded as a segment of a URL."
    )
    ill_at = serializers.DateTimeField(
        help_text="The time since which the window has at least one of these problems."
    )
    version = serializers.IntegerField(source="memory.version")
    known_until = serializers.IntegerField(
        help_text="The newest step whose window the doctor has examined."
    )
    is_current = serializers.BooleanField(
        help_text="Whether `known_until` is the newest step of the conversation."
    )
    unreadable = serializers.CharField(
        help_text="Why the doctor cannot examine the conversation; empty if it can."
    )
    refused_by = serializers.ListField(child=serializers.CharField())
    problems = ProblemOfWindowSerializer(many=True)


class DoctorSerializer(Json):
    in_use = serializers.ListField(
        child=serializers.CharField(), help_text="The providers in use, as `name` or `name:model`."
    )
    is_chosen = serializers.BooleanField(
        help_text="Whether providers were chosen; if not, the rules of all providers apply."
    )
    refused = serializers.IntegerField(
        allow_null=True,
        help_text="The number of conversations that a provider in use would reject; null while "
        "no conversation is examined.",
    )
    by_provider = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The number of conversations that each provider would reject, by provider; "
        "empty while no conversation is examined.",
    )
    by_rule = serializers.DictField(child=serializers.IntegerField())
    changed = serializers.IntegerField(
        help_text="The number of conversations that changed since the doctor examined them, or "
        "that it has not examined."
    )
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = IllSerializer(many=True)


class Doctor(Resource):
    @reads(DoctorSerializer, query=DoctorQuery, name="list_ill_memories")
    def get(self, request: Request, parameters: Parameters) -> Response:
        """List conversations that a provider in use would reject.

        The conversation whose problems began last comes first. Each diagnosis is about the window
        after the step `known_until`. `changed` is the number of conversations without a current
        diagnosis.

        With `rule`, the list has only conversations whose window breaks this rule. It then includes
        windows that a provider accepts but may mishandle. With `provider`, only this provider
        counts, even if it is not in use.
        """
        prefix = prefix_of(request)
        which = IllFilter(parameters.get("rule", ""), parameters.get("provider", ""), prefix)
        with field_at_fault("cursor"):
            page = doctor_page(which, cursor=parameters.get("cursor", ""), size=parameters["size"])
        answer = {
            **vars(doctor_counts(prefix, which.choices)),
            "in_use": which.choices.everywhere.written(),
            "is_chosen": which.choices.is_made,
            "next": with_query(request, cursor=page.next) if page.next else None,
            "previous": with_query(request, cursor=page.previous) if page.previous else None,
            "results": page.rows,
        }
        return response(DoctorSerializer, answer)


urlpatterns = [path("doctor/", Doctor.as_view(), name="doctor")]
