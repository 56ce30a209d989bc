"""Builds a call from a span or an event. Each convention has other attributes for its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.rooms.calls.call import GivenCall, Source, Usage
from inspector.rooms.otlp.records import Record


def call_of(
    record: Record,
    source: Source,
    format: str,
    request: Mapping[str, Any],
    response: Mapping[str, Any] | None,
    *,
    provider: str,
    model: str,
    session: str,
    usage: Usage,
    finish: str,
    error: str = "",
    is_exact: bool = False,
) -> GivenCall:
    """Return the call of a record. An `error` of its attributes counts if the record has none."""
    return GivenCall(
        key=record.key,
        source=source,
        sender=record.scope,
        format=format,
        request=request,
        response=response,
        at=record.at,
        provider=provider[:64],
        model=model[:255],
        duration=record.duration,
        usage=usage,
        finish=finish,
        error=record.error or error,
        is_exact=is_exact,
        session=session,
    )
