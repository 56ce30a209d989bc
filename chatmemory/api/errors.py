"""Maps exceptions to responses with problem details (RFC 9457).

The inspector's middleware and error pages use `Problem`, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from chatmemory import exceptions as core
from chatmemory.api.bodies import LengthRequired
from chatmemory.api.idempotency import InvalidKey, KeyInUse, KeyReused, ResponseErased
from chatmemory.database_errors import RETRY_SECONDS, Outage, outage
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.texts import printable
from chatmemory.reading import conversations

CONTENT_TYPE = "application/problem+json"


class InvalidField(core.InvalidValue):
    """Raised for an invalid parameter, header or member of a request's body. `field` names the
    invalid part, such as `messages[2]`.
    """

    def __init__(self, field: str, detail: str) -> None:
        self.field = field
        super().__init__(detail)


class UnknownName(InvalidField):
    """Raised for an unknown member of a request's body, or an unknown query parameter."""


# Subclasses come before their base class: the first match counts.
KINDS: list[tuple[type[core.ChatMemoryError], int, str]] = [
    (core.MemoryNotFound, 404, "Conversation not found"),
    (core.MessageNotFound, 404, "Message not found"),
    (core.StepNotFound, 404, "Step not found"),
    (core.MemoryExists, 409, "Conversation already exists"),
    (core.ImportUnfinished, 409, "Import unfinished"),
    (core.DeletionUnfinished, 503, "Deletion unfinished"),
    (core.PolicyRequired, 409, "Policy required"),
    (core.PolicyUnavailable, 409, "Policy unavailable"),
    (core.NoRoomBesidePins, 409, "No room beside pins"),
    (core.NotCompactable, 409, "Not compactable"),
    (core.NotPinnable, 409, "Not pinnable"),
    (core.NotRepairable, 409, "Not repairable"),
    (core.LongRecount, 422, "Long recount"),
    (core.DuplicateClientId, 409, "Duplicate client id"),
    (core.VersionConflict, 412, "Version conflict"),
    (core.UnstorableText, 422, "Unstorable text"),
    (core.InvalidMessage, 422, "Invalid message"),
    (core.UnsupportedMessage, 422, "Unsupported message"),
    (core.OversizedMessage, 422, "Oversized message"),
    (core.WindowTooLarge, 422, "Window too large"),
    (core.MessageTooLarge, 422, "Message too large"),
    (core.UnknownEstimator, 422, "Unknown token estimator"),
    (UnknownName, 400, "Unknown name"),
    (core.InvalidValue, 422, "Invalid value"),
    (LengthRequired, 411, "Length required"),
    (InvalidKey, 400, "Invalid idempotency key"),
    (KeyInUse, 409, "Idempotency key in use"),
    (ResponseErased, 410, "Idempotent response erased"),
    (KeyReused, 422, "Idempotency key reused"),
    (core.CorruptRow, 500, "Corrupt row"),
]

# The titles of other errors, by status
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    406: "Not acceptable",
    408: "Request timeout",
    413: "Body too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Server error",
    503: "Database busy (full, read-only, slow, down, not migrated)",
}


def titles_of(status: int) -> list[str]:
    """Return the titles of all problems that have this HTTP status."""
    own = [title for _, each, title in KINDS if each == status]
    return [*([TITLES[status]] if status in TITLES else []), *own]


@dataclass(frozen=True)
class Problem:
    """The problem details that answer a failed request.

    `members` are further members of the JSON object, and `headers` are headers of the response.
    """

    status: int
    title: str
    detail: str
    members: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The URI of the kind of problem, made from its title: `urn:chatmemory:version-conflict`
        for "Version conflict".
        """
        return f"urn:chatmemory:{self.title.lower().replace(' ', '-')}"

    def to_dict(self) -> JsonDict:
        """Return the problem as a JSON object. Characters that UTF-8 cannot encode (lone
        surrogates) are replaced.
        """
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
        """Return the problem as a response of Django, for code outside REST framework."""
        return HttpResponse(
            self.to_json(), CONTENT_TYPE, status=self.status, headers=dict(self.headers)
        )

    def to_api_response(self) -> Response:
        """Return the problem as a response of REST framework, for its views to render."""
        return Response(
            self.to_dict(), self.status, headers=dict(self.headers), content_type=CONTENT_TYPE
        )


URL_NOT_FOUND = Problem(404, "Not found", "No resource at this URL")
ID_NOT_ENCODED = Problem(
    404,
    "Not found",
    "No resource at this URL. Write an id as one segment, with each byte except "
    "A-Z a-z 0-9 - _ . as ~XX, such as order~237 for order#7, and end the URL with a slash",
)


def body_too_large(detail: str) -> Problem:
    return Problem(413, "Body too large", detail)


def database_problem(found: Outage) -> Problem:
    """Return the problem for a database that is not available: status 503, with the time to wait
    before trying again.
    """
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return Problem(503, f"Database {found.state}", found.detail, headers=headers)


@contextmanager
def field_at_fault(field: str) -> Iterator[None]:
    """Turn an InvalidValue that is raised in the `with` block into an InvalidField that names
    `field`.
    """
    try:
        yield
    except core.InvalidValue as error:
        raise InvalidField(field, str(error)) from error


def handle_exception(error: Exception, context: dict[str, object]) -> Response | None:
    """Return the response to an exception of a view, or None for an unexpected exception.

    If a message is invalid, the response names the message by its position in the request.
    """
    set_rollback()
    sent = getattr(context["request"], "checked_body", {}).get("sent")
    if sent is not None and getattr(error, "index", None) is not None:
        error.index = sent.places[error.index]  # type: ignore[attr-defined]  # an attribute of ours
    problem = problem_of(error)
    return problem.to_api_response() if problem else None


def problem_of(error: Exception) -> Problem | None:
    """Return the problem that answers an exception, or None for an unexpected exception."""
    if isinstance(error, core.ChatMemoryError):
        return _of_ours(error)
    if isinstance(error, Http404):
        return URL_NOT_FOUND
    if isinstance(error, PermissionDenied):
        error = drf.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        return body_too_large(str(error))
    if isinstance(error, drf.APIException):
        return _of_rest_framework(error)
    found = outage(error)
    return database_problem(found) if found else None


def _of_ours(error: core.ChatMemoryError) -> Problem | None:
    index = getattr(error, "index", None)
    fault = getattr(error, "field", "") if index is None else f"messages[{index}]"
    for kind, status, title in KINDS:
        if isinstance(error, kind):
            problem = Problem(status, title, str(error), _field(fault))
            break
    else:
        return None
    if isinstance(error, core.VersionConflict):
        return _with_current(problem, error.memory_id)
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        return replace(problem, headers={"Retry-After": str(RETRY_SECONDS)})
    return problem


def _with_current(problem: Problem, memory_id: str) -> Problem:
    """Return the problem with the member `current`: the current state of the conversation, or null
    if there is no conversation.
    """
    try:
        row = conversations.memory(memory_id)
    except core.MemoryNotFound:
        return replace(problem, members={"current": None})
    current = {
        "version": row.version,
        "policy": row.policy.to_dict() if row.policy else None,
        "labels": row.user_labels,
        "said_count": row.said_count,
        "window": row.window._asdict(),
        "load": row.load,
    }
    return replace(problem, members={"current": current}, headers={"ETag": f'"{row.version}"'})


def _of_rest_framework(error: drf.APIException) -> Problem:
    if isinstance(error, drf.ValidationError):
        field, detail = _first_fault(error.detail)
        return Problem(422, "Invalid value", detail, _field(field))
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    title = HTTPStatus(error.status_code).phrase.capitalize()
    return Problem(error.status_code, title, str(error.detail), headers=headers)


def _first_fault(detail: object, path: str = "") -> tuple[str, str]:
    """Return the path of the first invalid field, such as `labels.team` or `client_ids[0]`, and
    what is wrong with it.
    """
    if isinstance(detail, dict) and detail:
        name, inner = next(iter(detail.items()))
        part = f"[{name}]" if isinstance(name, int) else f".{name}"
        return _first_fault(
            inner, path if name == "non_field_errors" else (path + part).lstrip(".")
        )
    if isinstance(detail, list) and detail:
        return _first_fault(detail[0], path)
    return path, str(detail)


def _field(name: str) -> dict[str, str]:
    return {"field": name} if name else {}
