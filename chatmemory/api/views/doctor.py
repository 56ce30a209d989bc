"""The doctor: which conversations providers would refuse, and what mends them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import queries
from chatmemory.api import requests
from chatmemory.api.errors import InvalidField
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import reads
from chatmemory.api.responses import DoctorSerializer, response, with_query
from chatmemory.core.exceptions import InvalidValue


class Doctor(Resource):
    @reads(DoctorSerializer, query=requests.DoctorQuery, name="list_ill_memories")
    def get(self, request: Request) -> Response:
        """List conversations that a provider would refuse.

        Those that became ill last come first. With `rule`, also those that are only mishandled.
        """
        asked, prefix = requests.read_query(requests.DoctorQuery, request), prefix_of(request)
        which = queries.IllFilter(asked.get("rule", ""), asked.get("provider", ""), prefix)
        try:
            page = queries.doctor_page(which, cursor=asked.get("cursor", ""), size=asked["size"])
        except InvalidValue as error:
            raise InvalidField("cursor", str(error)) from error
        counts = queries.doctor_counts(prefix)
        answer = {
            "refused": counts.refused,
            "by_provider": counts.by_provider,
            "by_rule": counts.by_rule,
            "next": with_query(request, cursor=page.next) if page.next else None,
            "previous": with_query(request, cursor=page.previous) if page.previous else None,
            "results": page.rows,
        }
        return response(DoctorSerializer, answer)
