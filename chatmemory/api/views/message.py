"""One message: show, pin and redact."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import explain, queries, services
from chatmemory.access.roles import ERASE
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, SEQ, addressed_by, changes, reads
from chatmemory.api.responses import MessageDetailSerializer, response
from chatmemory.api.views.base import Resource
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.queries.history import message_in


@addressed_by(MEMORY_ID, SEQ)
class MemoryMessage(Resource):
    @reads(MessageDetailSerializer, name="get_message")
    def get(self, request: Request, memory_id: str, seq: int) -> Response:
        """Show one message: its content, its stays in memory, and why it left."""
        return _message(memory_id, seq)


@addressed_by(MEMORY_ID, SEQ)
class Pin(Resource):
    @changes(MessageDetailSerializer, name="pin_message")
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Pin a message that is in memory, with what belongs to it: a tool call and its results. It
        leaves only when memory is cleared, or set to a list without it.
        """
        services.pin(memory_id, seq, **requests.changed_by(request))
        return _message(memory_id, seq)

    @changes(MessageDetailSerializer, name="unpin_message")
    def delete(self, request: Request, memory_id: str, seq: int) -> Response:
        """Let a pinned message leave again when there is no room."""
        services.unpin(memory_id, seq, **requests.changed_by(request))
        return _message(memory_id, seq)


@addressed_by(MEMORY_ID, SEQ)
class Redaction(Resource):
    needs = {"POST": ERASE}

    @changes(MessageDetailSerializer, name="redact_message")
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Remove a message's text everywhere, for good; a tombstone stays. A second time changes
        nothing.
        """
        services.redact(memory_id, seq, **requests.changed_by(request))
        return _message(memory_id, seq)


@one_snapshot()
def _message(memory_id: str, seq: int) -> Response:
    memory = find_memory(memory_id)
    row = message_in(memory, seq)
    left = row.stays[-1].left_step if row.stays else None
    answer = {
        **vars(row),
        "message": row.message,
        "in_memory": bool(row.stays) and left is None,
        "pinned": bool(row.stays) and left is None and row.stays[-1].pinned,
        "why": _why(memory_id, seq, left) if left is not None else None,
    }
    return response(MessageDetailSerializer, answer, version=memory.version)


def _why(memory_id: str, seq: int, left: int) -> dict[str, Any]:
    """The explanation of the step at which the message left."""
    why = explain.why_left(queries.step(memory_id, left).change, seq)
    return {
        "step": left,
        "question": why.question,
        "summary": why.summary,
        "receipt": explain.shortened(why.receipt),
    }
