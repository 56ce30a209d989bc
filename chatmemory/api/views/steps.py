"""The ledger: every change of a conversation."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import explain, queries
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, STEP, addressed_by, reads
from chatmemory.api.responses import (
    StepDetailSerializer,
    StepsSerializer,
    response,
)
from chatmemory.api.views.base import Resource, with_query


@addressed_by(MEMORY_ID)
class MemorySteps(Resource):
    @reads(StepsSerializer, query=requests.StepsQuery, name="list_steps")
    def get(self, request: Request, memory_id: str) -> Response:
        """List the steps.

        They are in the order in which they happened. `later` is the next page.
        """
        asked = requests.read(requests.StepsQuery, request.query_params)
        size = asked["size"]
        rows = queries.steps(memory_id, after=asked.get("after", 0), size=size + 1)
        later = with_query(request, after=rows[size - 1].n) if len(rows) > size else None
        return response(StepsSerializer, {"steps": rows[:size], "later": later})


@addressed_by(MEMORY_ID, STEP)
class MemoryStep(Resource):
    @reads(StepDetailSerializer, query=requests.StepQuery, name="get_step")
    def get(self, request: Request, memory_id: str, n: int) -> Response:
        """Show one step.

        What arrived, what was evicted and why, and the arithmetic. `later` has more of what arrived
        and was evicted.
        """
        asked = requests.read(requests.StepQuery, request.query_params)
        start = asked.get("after", 0)
        end = start + asked["size"]
        step = queries.step(memory_id, n)
        arrived, evicted = step.change.arrived, step.change.evicted
        has_more = end < max(len(arrived), len(evicted))
        answer = {
            **vars(step.row),
            "summary": explain.caption(step.change).summary,
            "arrived": [each.seq for each in arrived[start:end]],
            "arrived_count": len(arrived),
            "evicted": evicted[start:end],
            "evicted_count": len(evicted),
            "later": with_query(request, after=end) if has_more else None,
            "receipt": explain.shortened(explain.receipt(step.change)),
        }
        return response(StepDetailSerializer, answer)
