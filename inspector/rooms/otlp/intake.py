"""The URLs of OTLP (OpenTelemetry's protocol): apps send spans and log records, and the model calls
in them are stored.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from chatmemory.api.bodies import BodyLimit
from chatmemory.api.guard import Guarded, OneFormat, prefix_of
from chatmemory.exceptions import ChatMemoryError
from chatmemory.roles import actor_of
from inspector.conf import inspector_configuration
from inspector.rooms.calls.call import Dropped, DropReason, NewCall
from inspector.rooms.calls.writes import count_dropped, count_no_more, store
from inspector.rooms.otlp.bounds import TooMuch
from inspector.rooms.otlp.records import (
    JSON,
    LOGS,
    METRICS,
    PROTOBUF,
    TRACES,
    NoOtlp,
    answer,
    read_batch,
)
from inspector.rooms.otlp.spans import calls_of_logs, calls_of_spans, without_doubles

AT_ONCE = 1_000  # calls in a request: an SDK sends at most 512 spans by default
_TOO_MANY = f"one request can store at most {AT_ONCE:,} calls"
_ANY_OF = f"send {PROTOBUF} or {JSON}"


class _Undecodable(Exception):
    """Raised for a body that cannot be decoded. `answer` is the response to send."""

    def __init__(self, answer: APIException, encoding: str) -> None:
        super().__init__(str(answer))
        self.answer, self.encoding = answer, encoding


class Otlp(Guarded):
    """Receives one kind of OTLP data: traces, logs or metrics. Metrics are accepted and dropped."""

    renderer_classes = (JSONRenderer,)
    content_negotiation_class = OneFormat
    schema = None  # type: ignore[assignment]  # REST framework's types know no view without a schema
    signal = METRICS

    @classmethod
    def limit(cls, method: str | None) -> BodyLimit:
        return BodyLimit(inspector_configuration().OTLP_BYTES, 'INSPECTOR["OTLP_BYTES"]')

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Use JSON for errors and ignore the Accept header. Other answers have the content type of
        the request.
        """
        return JSONRenderer(), JSON

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        try:
            super().initial(request, *args, **kwargs)
        except RequestDataTooBig:
            self.body_refused(request._request)
            raise

    def body_refused(self, request: HttpRequest) -> None:
        """Count a request that was rejected because its body is too long. Pages show the count
        among the model calls that were not stored. Requests without permission are not counted.
        """
        sender = self.initialize_request(request)
        with suppress(APIException, DatabaseError):
            self.perform_authentication(sender)
            self.check_permissions(sender)
            count_dropped([Dropped(DropReason.TOO_LARGE, self.signal)], prefix_of(sender))

    def post(self, request: Request) -> HttpResponseBase:
        """Store the model calls of an OTLP request."""
        content_type, _ = parse_header_parameters(request.headers.get("Content-Type", ""))
        prefix = prefix_of(request)
        try:
            if content_type not in (PROTOBUF, JSON):
                why = f"the body has the Content-Type {content_type!r}: {_ANY_OF}"
                raise _Undecodable(UnsupportedMediaType(content_type, why), content_type)
            batch = read_batch(self._unpacked(request), self.signal, content_type)
        except _Undecodable as error:
            count_dropped([Dropped(DropReason.ENCODING, error.encoding)], prefix)
            raise error.answer from error
        except (RequestDataTooBig, TooMuch) as error:
            count_dropped([Dropped(DropReason.TOO_LARGE, self.signal)], prefix)
            raise RequestDataTooBig(str(error)) from error
        except NoOtlp as error:
            count_dropped([Dropped(DropReason.INVALID, self.signal)], prefix)
            raise ParseError(str(error)) from error
        if batch.rejected:
            invalid = Dropped(DropReason.INVALID, self.signal, count=batch.rejected)
            count_dropped([invalid], prefix)
        found = calls_of_logs if self.signal == LOGS else calls_of_spans
        failed = _stored(found(batch.records), prefix, actor_of(request))
        rejected = batch.rejected + len(failed)
        why = next(iter(failed), "the records do not follow the protocol OTLP")
        return HttpResponse(answer(self.signal, content_type, rejected, why), content_type)

    def _unpacked(self, request: Request) -> bytes:
        """Return the decompressed body. Raises _Undecodable, and RequestDataTooBig if the body is
        too long before or after decompression.
        """
        limit = self.limit("POST")
        # Not `request.body`, which refuses more than DATA_UPLOAD_MAX_MEMORY_SIZE
        body: bytes = request._request.read(limit.size + 1)
        if len(body) > limit.size:
            raise RequestDataTooBig(
                f"the body of the request is larger than {limit}: send fewer records in one request"
            )
        encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding in ("identity", ""):
            return body
        if encoding != "gzip":
            why = f"the body has the Content-Encoding {encoding!r}: send gzip, or no encoding"
            raise _Undecodable(UnsupportedMediaType(encoding, why), encoding)
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            found = unpacker.decompress(body, limit.size + 1)
        except zlib.error as error:
            raise _Undecodable(
                ParseError(f"the body of the request is not valid gzip: {error}"), encoding
            ) from error
        if len(found) > limit.size:
            raise RequestDataTooBig(
                f"the body of the request is larger than {limit}: send fewer records in one request"
            )
        if not unpacker.eof:
            raise _Undecodable(
                ParseError("the gzip data of the body is cut off: send the whole body"), encoding
            )
        return found


def _stored(found: Iterable[NewCall | Dropped], prefix: str, actor: str) -> list[str]:
    """Store calls. Return why some calls could not be stored."""
    calls, dropped = [], []
    for each in found:
        if isinstance(each, NewCall):
            calls.append(each)
        else:
            dropped.append(each)
    calls.sort(key=lambda each: each.at)
    failed = [_TOO_MANY for _ in calls[AT_ONCE:]]
    dropped += [Dropped(DropReason.TOO_MANY, each.sender) for each in calls[AT_ONCE:]]
    new: list[NewCall] = []
    for call in without_doubles(calls[:AT_ONCE]):
        try:
            if store(call, prefix, actor).is_new:
                new.append(call)
        except ChatMemoryError as error:
            failed.append(str(error))
            dropped.append(Dropped(DropReason.REFUSED, type(error).__name__))
    count_dropped(dropped, prefix)
    if new:
        count_no_more(new, prefix)
    return failed


VIEWS: Mapping[str, Callable[..., HttpResponseBase]] = {
    signal: Otlp.as_view(signal=signal) for signal in (TRACES, LOGS, METRICS)
}
