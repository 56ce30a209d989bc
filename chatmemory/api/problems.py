"""Problem details (RFC 9457): the only module that writes application/problem+json.

The API's views, the pages' error handlers and the ASGI body limit all answer with a `Problem`;
`errors` decides which error is which problem.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from rest_framework.response import Response

from chatmemory.core.texts import printable
from chatmemory.services.database_errors import RETRY_SECONDS, Outage

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Problem:
    """One problem; `members` extend its JSON object, `headers` go with its response."""

    status: int
    title: str
    detail: str
    members: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """`urn:chatmemory:version-conflict` for the title "Version conflict"."""
        return f"urn:chatmemory:{self.title.lower().replace(' ', '-')}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, without lone surrogates, which UTF-8 cannot encode."""
        values = {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
        return {
            name: printable(value) if isinstance(value, str) else value
            for name, value in values.items()
        }

    def to_json(self) -> bytes:
        return json.dumps(self.to_dict()).encode()

    def to_http_response(self) -> HttpResponse:
        """For code that answers outside REST framework."""
        return HttpResponse(
            self.to_json(), CONTENT_TYPE, status=self.status, headers=dict(self.headers)
        )

    def to_api_response(self) -> Response:
        """For REST framework's views, which render it."""
        return Response(
            self.to_dict(), self.status, headers=dict(self.headers), content_type=CONTENT_TYPE
        )


URL_NOT_FOUND = Problem(404, "Not found", "No resource at this URL")
ID_NOT_ENCODED = Problem(
    404,
    "Not found",
    "No resource at this URL. An id is one segment of it, which ends with a slash: write every "
    "byte except A-Z a-z 0-9 - _ . as ~XX, such as order~237 for order#7",
)


def body_too_large(detail: str) -> Problem:
    return Problem(413, "Body too large", detail)


def database_problem(outage: Outage) -> Problem:
    """503 with the time to wait before trying again."""
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return Problem(503, f"Database {outage.state}", outage.detail, headers=headers)
