"""Simulations: what adding messages would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from chatmemory import queries
from chatmemory.access.roles import READ
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, addressed_by, reads
from chatmemory.api.responses import ChangeSerializer, SimulationSerializer
from chatmemory.api.views.base import Resource, whole_json
from chatmemory.conf import PAGE_MAX
from chatmemory.services import ChangeResult
from chatmemory.streaming import json_list


@addressed_by(MEMORY_ID)
class Simulate(Resource):
    needs = {"POST": READ}

    @reads(SimulationSerializer, body=requests.SimulationRequest, name="simulate", refusals=(409,))
    def post(self, request: Request, memory_id: str) -> HttpResponse:
        """Show what adding messages would do.

        Under the policy of the conversation or another, now or after a step. Nothing is stored.
        """
        body = requests.read_body(requests.SimulationRequest, request)
        sent = body["sent"]
        with sent.named_in_errors():
            simulation = queries.simulate(
                memory_id, sent.messages, body.get("policy"), body.get("at"), body["recount"]
            )
        answer = {
            "policy": simulation.policy,
            "changes": (),
            "totals": simulation.totals,
            "lost": sent.losses[:PAGE_MAX],
        }
        told = SimulationSerializer(answer).data
        return whole_json(_with_changes(told, simulation.changes))


def _with_changes(told: Mapping[str, Any], changes: Iterable[ChangeResult]) -> Iterator[str]:
    """The JSON of a simulation. There may be very many changes, so each is made alone."""
    before = "{"
    for name, value in told.items():
        yield f'{before}"{name}":'
        if name == "changes":
            yield from json_list(map(ChangeSerializer().to_representation, changes))
        else:
            yield JSONRenderer().render(value).decode()
        before = ","
    yield "}"
