"""Idempotency-Key: a repeated request gets the stored response, and is not carried out twice.

Follows the IETF draft (draft-ietf-httpapi-idempotency-key-header):

- A different request with the same key gets the error 422.
- A repeated request gets 409 while the first request is in progress.
- A request that failed changed nothing, so its key may be used again.

A redaction of a message, or the deletion of the conversation, erases the stored responses of the
conversation (see `ledger.erasure`). Any later request to that conversation with the key of an
erased response gets 410.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.exceptions import ChatMemoryError
from chatmemory.ledger.fingerprints import fingerprint, is_fingerprint
from chatmemory.models import IdempotentAnswer
from chatmemory.patterns import declared_pattern

KEY_MAX = 255
# With or without quotation marks around it, and without others in it
KEY = f'"[ !#-~]{{1,{KEY_MAX}}}"|[!#-~]([ !#-~]{{0,{KEY_MAX - 2}}}[!#-~])?'
_KEY = declared_pattern(KEY)
FORGOTTEN_AT_ONCE = 100
KEPT_HEADERS = ("Location", "ETag")

Handler = Callable[..., Response]

_in_progress: set[tuple[str, str]] = set()
_lock = threading.Lock()


class InvalidKey(ChatMemoryError):
    """The header Idempotency-Key does not hold a valid key."""


class KeyInUse(ChatMemoryError):
    """The first request with this idempotency key is still in progress."""


class ResponseErased(ChatMemoryError):
    """The first request with this idempotency key was carried out, but its response was erased with
    the conversation's text.
    """


class KeyReused(ChatMemoryError):
    """The idempotency key was already used with a different request."""


def idempotent(handler: Handler, ahead: Callable[[Request, str], None] | None = None) -> Handler:
    """Return a handler that carries out repeated requests with the same Idempotency-Key only once.
    Requests without this header go to `handler` as usual.

    `ahead` is called with the request and the conversation's id, before the key and the
    conversation are locked. It is not called for a request without the header, or without a
    conversation in its URL.
    """

    @wraps(handler)
    def once(view: object, request: Request, *args: str, **kwargs: str) -> Response:
        header = request.headers.get("Idempotency-Key")
        if header is None:
            return handler(view, request, *args, **kwargs)
        key = read_key(header)
        # Keys are unique per caller.
        caller = f"token {request.auth.pk}" if request.auth else f"user {request.user.pk}"
        # The body is hashed on its own: joined to the line, it would be in memory twice.
        line = f"{request.method} {request.get_full_path()}\n"
        parts = [line.encode(), request._request.body]
        known_by = fingerprint("request", parts)
        _forget_some(caller, key)
        memory_id = kwargs.get("memory_id")
        if ahead and memory_id is not None:
            ahead(request, memory_id)
        with claimed_key(caller, key):
            stored = IdempotentAnswer.objects.filter(caller=caller, key=key).first()
            if stored is not None:
                if memory_id is None and isinstance(request.data, Mapping):
                    memory_id = request.data.get("id")  # the id of the conversation to be created
                return _stored_response(stored, parts, memory_id)
            response = handler(view, request, *args, **kwargs)
            IdempotentAnswer.objects.create(
                caller=caller,
                key=key,
                memory_id=memory_id or response.data["id"],
                request=known_by,
                status=response.status_code,
                headers={name: response[name] for name in KEPT_HEADERS if name in response},
                body=json.dumps(response.data, cls=JSONEncoder),
            )
            return response

    once.is_idempotent = True  # type: ignore[attr-defined]  # an attribute of ours
    return once


def read_key(header: str) -> str:
    """Return the key from the value of an Idempotency-Key header. If the key is in quotation marks,
    they are removed.

    Raises InvalidKey for a key that is empty, too long or not printable ASCII.
    """
    text = header.strip()
    if not _KEY.fullmatch(text):
        raise InvalidKey(f"Idempotency-Key must hold 1 to {KEY_MAX} printable ASCII characters")
    return text.strip('"')


@contextmanager
def claimed_key(caller: str, key: str) -> Iterator[None]:
    """Run the block in a transaction that holds the idempotency key `key` of a caller. Raises
    KeyInUse while another request holds the key.

    On SQLite, KeyInUse is only raised for requests in the same process. A request in another
    process waits until this transaction ends.
    """
    claim = (caller, key)
    in_use = f"the first request with the key {key!r} is still in progress: try again later"
    with _lock:
        if claim in _in_progress:
            raise KeyInUse(in_use)
        _in_progress.add(claim)
    try:
        with database.atomic():
            if not _lock_for_all_processes(claim):
                raise KeyInUse(in_use)
            yield
    finally:
        with _lock:
            _in_progress.discard(claim)


def _lock_for_all_processes(claim: tuple[str, str]) -> bool:
    """Take an advisory lock of PostgreSQL, which is held until the transaction ends. Return False
    if another process has the lock.
    """
    connection = database.connection()
    if connection.vendor != "postgresql":
        return True
    number = hashlib.sha256("\n".join(claim).encode()).digest()[:8]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(number, signed=True)]
        )
        return bool(cursor.fetchone()[0])


def _expired() -> QuerySet[IdempotentAnswer]:
    earliest = timezone.now() - timedelta(hours=configuration().IDEMPOTENCY_HOURS)
    return IdempotentAnswer.objects.filter(created_at__lt=earliest)


def forget_expired_answers() -> None:
    """Delete all stored responses that have expired."""
    _expired().delete()


def _forget_some(caller: str, key: str) -> None:
    """Delete some expired responses before anything is locked. The response of this key is deleted
    too if it has expired.
    """
    expired = _expired()
    if not expired.exists():
        return
    with database.atomic():
        expired.filter(caller=caller, key=key).delete()
        some = expired.select_for_update(skip_locked=True).values_list("id", flat=True)
        IdempotentAnswer.objects.filter(id__in=list(some[:FORGOTTEN_AT_ONCE])).delete()


def _stored_response(
    stored: IdempotentAnswer, request: Sequence[bytes], memory_id: str | None
) -> Response:
    """Return the stored response of a repeated request.

    Raises KeyReused if the key belongs to a different request. Raises ResponseErased if the
    response was erased.
    """
    is_erased = not stored.request
    is_other = not is_erased and not is_fingerprint(stored.request, "request", request)
    if is_other or memory_id != stored.memory_id:
        raise KeyReused(
            f"the Idempotency-Key {stored.key!r} was already used for a different request: send "
            "this request with a new key"
        )
    if is_erased:
        raise ResponseErased(
            f"the first request with the key {stored.key!r} was carried out, but a redaction or a "
            "deletion erased its stored response. Read the conversation to see whether it was "
            "this request"
        )
    headers = {**stored.headers, "Idempotency-Replayed": "true"}
    return Response(json.loads(stored.body), status=stored.status, headers=headers)
