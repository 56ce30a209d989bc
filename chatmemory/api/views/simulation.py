"""Simulations: what adding messages would do."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import queries
from chatmemory.access.roles import READ
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, addressed_by, reads
from chatmemory.api.responses import SimulationSerializer, response
from chatmemory.api.views.base import Resource
from chatmemory.conf import PAGE_MAX


@addressed_by(MEMORY_ID)
class Simulate(Resource):
    needs = {"POST": READ}

    @reads(SimulationSerializer, body=requests.SimulationRequest, name="simulate", refusals=(409,))
    def post(self, request: Request, memory_id: str) -> Response:
        """Show what adding messages would do, under this policy or another; nothing is stored."""
        body = requests.read_body(requests.SimulationRequest, request)
        sent = body["sent"]
        with sent.named_in_errors():
            simulation = queries.simulate(
                memory_id, sent.messages, body.get("policy"), body.get("at"), body["recount"]
            )
        answer = {
            "policy": simulation.policy,
            "changes": simulation.changes,
            "totals": simulation.totals,
            "lost": sent.losses[:PAGE_MAX],
        }
        return response(SimulationSerializer, answer)
