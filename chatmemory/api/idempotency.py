"""Idempotency-Key: a repeated request gets the first response again and is not carried out twice.

Follows the IETF draft (draft-ietf-httpapi-idempotency-key-header): the same key with a different
request is refused (422), and so is a request while the first one is still in progress (409). The
response is stored in the transaction of the change, so a crash keeps both or neither. A request
that failed changed nothing: its key may be used again. A redaction or deletion of the conversation
erases the response and what the request is known by (see `services.erasure`); then any request to
that conversation with the key is answered with 410.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.models import IdempotentAnswer
from chatmemory.services.fingerprints import fingerprint, is_fingerprint

KEY_MAX = 255
FORGOTTEN_AT_ONCE = 100
KEPT_HEADERS = ("Location", "ETag")

Handler = Callable[..., Response]
Asked = Sequence[bytes]  # what a request is known by, in parts

_in_progress: set[tuple[str, str]] = set()
_lock = threading.Lock()


class InvalidKey(ChatMemoryError):
    """The header does not hold a valid key."""


class KeyInUse(ChatMemoryError):
    """The first request with this key is still in progress."""


class ResponseErased(ChatMemoryError):
    """A request was carried out, and its response was erased with the conversation's words."""


class KeyReused(ChatMemoryError):
    """The key was used with a different request."""


def idempotent(handler: Handler, ahead: Callable[[Request, str], None] | None = None) -> Handler:
    """Decorates a handler that changes something, to honour the header.

    What can be done `ahead` for a conversation that is there is done before anything is locked.
    """

    @wraps(handler)
    def once(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        header = request.headers.get("Idempotency-Key")
        if header is None:
            return handler(view, request, *args, **kwargs)
        key, caller, asked = read_key(header), _caller(request), _asked(request)
        known_by = fingerprint("request", asked)
        _forget_some(caller, key)
        if ahead and "memory_id" in kwargs:
            ahead(request, kwargs["memory_id"])
        with _claimed(caller, key):
            kept = _kept(caller, key)
            if kept is not None:
                return _again(kept, asked, kwargs.get("memory_id") or _created(request))
            response = handler(view, request, *args, **kwargs)
            memory_id = kwargs.get("memory_id") or response.data["id"]
            _keep(caller, key, known_by, response, memory_id)
            return response

    once.is_idempotent = True  # type: ignore[attr-defined]
    return once


def _created(request: Request) -> str | None:
    """The id that a request gives to a new conversation."""
    return request.data.get("id") if isinstance(request.data, Mapping) else None


def read_key(header: str) -> str:
    """The key of a header, in quotation marks or without. Raises InvalidKey."""
    text = header.strip()
    key = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not 0 < len(key) <= KEY_MAX or not key.isascii() or not key.isprintable() or '"' in key:
        raise InvalidKey(f"Idempotency-Key must hold 1 to {KEY_MAX} printable ASCII characters")
    return key


@contextmanager
def _claimed(caller: str, key: str) -> Iterator[None]:
    """One transaction for the change and its response. Raises KeyInUse while another holds the key.

    On SQLite a second process waits until the transaction ends, and then finds the response.
    """
    claim = (caller, key)
    with _lock:
        if claim in _in_progress:
            raise _in_use(key)
        _in_progress.add(claim)
    try:
        with database.atomic():
            _lock_key(claim)
            yield
    finally:
        with _lock:
            _in_progress.discard(claim)


def _lock_key(claim: tuple[str, str]) -> None:
    connection = database.connection()
    if connection.vendor != "postgresql":
        return
    number = hashlib.sha256("\n".join(claim).encode()).digest()[:8]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(number, signed=True)]
        )
        if not cursor.fetchone()[0]:
            raise _in_use(claim[1])


def _in_use(key: str) -> KeyInUse:
    return KeyInUse(f"the first request with the key {key!r} is still in progress: try again later")


def _forget_some(caller: str, key: str) -> None:
    """Delete some responses that have expired, and that of this key, before anything is locked."""
    expired = IdempotentAnswer.objects.filter(created_at__lt=_earliest())
    if not expired.exists():
        return
    with database.atomic():
        expired.filter(caller=caller, key=key).delete()
        some = expired.select_for_update(skip_locked=True).values_list("id", flat=True)
        IdempotentAnswer.objects.filter(id__in=list(some[:FORGOTTEN_AT_ONCE])).delete()


def _kept(caller: str, key: str) -> IdempotentAnswer | None:
    """The stored response of an earlier request."""
    return IdempotentAnswer.objects.filter(caller=caller, key=key).first()


def forget_expired_answers() -> None:
    """Delete all expired responses."""
    IdempotentAnswer.objects.filter(created_at__lt=_earliest()).delete()


def _earliest() -> datetime:
    return timezone.now() - timedelta(hours=configuration().IDEMPOTENCY_HOURS)


def _again(kept: IdempotentAnswer, asked: Asked, memory_id: str | None) -> Response:
    """The stored response. Raises KeyReused, and ResponseErased for any request of the conversation
    whose response was erased: the fingerprint of the first one was, too.
    """
    is_erased = not kept.request
    is_other = not is_erased and not is_fingerprint(kept.request, "request", asked)
    if is_other or memory_id != kept.memory_id:
        raise KeyReused(f"the key {kept.key!r} was used with a different request")
    if is_erased:
        raise ResponseErased(
            f"a request with the key {kept.key!r} was carried out; whether it was this one is no "
            "longer known, as it was erased with words of the conversation: read the conversation "
            "instead"
        )
    headers = {**kept.headers, "Idempotency-Replayed": "true"}
    return Response(json.loads(kept.body), status=kept.status, headers=headers)


def _keep(caller: str, key: str, known_by: str, response: Response, memory_id: str) -> None:
    IdempotentAnswer.objects.create(
        caller=caller,
        key=key,
        memory_id=memory_id,
        request=known_by,
        status=response.status_code,
        headers={name: response[name] for name in KEPT_HEADERS if name in response},
        body=json.dumps(response.data, cls=JSONEncoder),
    )


def _caller(request: Request) -> str:
    """Keys are unique per caller: a token, or a signed-in user."""
    return f"token {request.auth.pk}" if request.auth else f"user {request.user.pk}"


def _asked(request: Request) -> Asked:
    """A body is a part of its own: put together with the line, it would be in memory twice."""
    line = f"{request.method} {request.get_full_path()}\n"
    return [line.encode(), request._request.body]
