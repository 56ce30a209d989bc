"""Errors as problem details (RFC 9457). The only place that knows which error is which status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from chatmemory import queries
from chatmemory.api.idempotency import InvalidKey, KeyInUse, KeyReused
from chatmemory.core import exceptions as core
from chatmemory.core.printable import printable
from chatmemory.services.database_errors import RETRY_SECONDS, Outage, outage

_STATUS: list[tuple[type[core.ChatMemoryError], int, str]] = [
    (core.MemoryNotFound, 404, "Unknown conversation"),
    (core.MessageNotFound, 404, "Unknown message"),
    (core.StepNotFound, 404, "Unknown step"),
    (core.MemoryExists, 409, "The conversation exists already"),
    (core.PolicyRequired, 409, "The conversation has no policy"),
    (core.DuplicateClientId, 409, "The client id is taken"),
    (core.UnstorableText, 422, "Text that cannot be stored"),
    (core.InvalidMessage, 422, "Invalid message"),
    (core.UnknownEstimator, 422, "Unknown token estimator"),
    (core.InvalidValue, 422, "Invalid value"),
    (InvalidKey, 400, "Invalid idempotency key"),
    (KeyInUse, 409, "The first request is still under way"),
    (KeyReused, 422, "The idempotency key belongs to another request"),
    (core.CorruptRow, 500, "A stored row cannot be read"),
]


class InvalidField(core.InvalidValue):
    """A body that breaks its schema; `field` names the place, such as `messages[2]`."""

    def __init__(self, field: str, detail: str) -> None:
        self.field = field
        super().__init__(detail)


def problem_details(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: None lets unforeseen errors through as what they are."""
    set_rollback()
    if isinstance(error, core.ChatMemoryError):
        return _of_ours(error)
    if isinstance(error, Http404):
        error = drf.NotFound("nothing lies at this address")
    if isinstance(error, PermissionDenied):
        error = drf.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        return _problem(413, "Body too large", str(error))
    if isinstance(error, drf.APIException):
        return _of_drf(error)
    if found := outage(error):
        return _of_outage(found)
    return None


def _of_outage(found: Outage) -> Response:
    response = _problem(503, f"The database is {found.state}", found.detail)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _of_ours(error: core.ChatMemoryError) -> Response | None:
    if isinstance(error, core.VersionConflict):
        return _of_conflict(error)
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            field = getattr(error, "field", None)
            return _problem(status, title, str(error), **({"field": field} if field else {}))
    return None


def _of_conflict(error: core.VersionConflict) -> Response:
    """With the state that the caller has not seen; none, where there is no conversation."""
    try:
        row = queries.memory(error.memory_id)
    except core.MemoryNotFound:
        return _problem(412, "The conversation has changed", str(error), current=None)
    current = {
        "version": row.version,
        "policy": row.policy.to_dict() if row.policy else None,
        "labels": row.labels,
        "said_count": row.said_count,
        "window": row.window._asdict(),
        "load": row.load,
    }
    response = _problem(412, "The conversation has changed", str(error), current=current)
    response["ETag"] = f'"{row.version}"'
    return response


def _of_drf(error: drf.APIException) -> Response:
    detail = error.detail
    if isinstance(error, drf.ValidationError):
        field, words = _first_fault(detail)
        response = _problem(422, "Invalid value", words, **({"field": field} if field else {}))
    else:
        title = HTTPStatus(error.status_code).phrase.capitalize()
        response = _problem(error.status_code, title, str(detail))
    if auth_header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        response["Retry-After"] = str(int(wait))
    return response


def _first_fault(detail: Any, path: str = "") -> tuple[str, str]:
    if isinstance(detail, dict) and detail:
        name, inner = next(iter(detail.items()))
        joined = f"{path}.{name}".lstrip(".") if name != "non_field_errors" else path
        return _first_fault(inner, joined)
    if isinstance(detail, list) and detail:
        return _first_fault(detail[0], path)
    return path, str(detail)


def _problem(status: int, title: str, detail: str, **extra: Any) -> Response:
    slug = title.lower().replace(" ", "-").replace(",", "")
    body: dict[str, Any] = {
        "type": f"urn:chatmemory:{slug}",
        "title": title,
        "status": status,
    }
    for name, value in (extra | {"detail": detail}).items():
        body[name] = printable(value) if isinstance(value, str) else value
    return Response(body, status=status, content_type="application/problem+json")
