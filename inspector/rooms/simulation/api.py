"""The REST API that shows what adding messages to a conversation would do."""

from __future__ import annotations

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory.api import fields
from chatmemory.api.guard import Resource
from chatmemory.api.operations import reads
from chatmemory.api.requests import NUMBER_MAX, MessagesRequest, Parameters
from chatmemory.api.responses import (
    ChangeSerializer,
    Json,
    StoredPolicyField,
    TotalsSerializer,
    lost_of_request,
    response,
)
from chatmemory.conf import PAGE_MAX
from chatmemory.reading import simulation
from chatmemory.roles import READ


class SimulationRequest(MessagesRequest):
    """The body of a request: the messages to simulate, and optionally another `policy` and an
    earlier step `at`.
    """

    policy = fields.PolicyField(
        required=False,
        help_text="The policy under which the messages are simulated; by default the policy in "
        "force.",
    )
    at = fields.WholeNumberField(
        min_value=0,
        max_value=NUMBER_MAX,
        required=False,
        help_text="The step after which the messages are added; by default the last step.",
    )
    recount = fields.FlagField(
        default=False,
        help_text="Whether to count the tokens of more than 5,000 messages again if the policy "
        "has a different estimator.",
    )


class SimulationSerializer(Json):
    policy = StoredPolicyField()
    changes = ChangeSerializer(many=True)
    window = TotalsSerializer()
    limit = serializers.IntegerField()
    load = serializers.IntegerField(read_only=True)
    lost = lost_of_request()


class Simulate(Resource):
    needs = {"POST": READ}

    @reads(SimulationSerializer, body=SimulationRequest, name="simulate", refusals=(409,))
    def post(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Show what adding messages would do.

        The simulation uses the conversation's policy, or the policy of the request. The messages
        are added to the present state, or to the state at step `at`. Nothing is stored.
        """
        sent = parameters["sent"]
        tried = simulation.simulate(
            memory_id,
            sent.messages,
            parameters.get("policy"),
            parameters.get("at"),
            parameters["recount"],
        )
        answer = {
            "policy": tried.policy,
            "changes": tried.changes,
            "window": tried.totals,
            "limit": tried.policy.limit,
            "load": tried.policy.load(tried.totals),
            "lost": sent.losses[:PAGE_MAX],
        }
        return response(SimulationSerializer, answer)


urlpatterns = [
    path("memories/<memory:memory_id>/simulate/", Simulate.as_view(), name="simulate"),
]
