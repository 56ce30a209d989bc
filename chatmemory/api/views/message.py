"""One message: show, pin and redact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import explain, queries, services
from chatmemory.access.roles import ERASE
from chatmemory.api import requests
from chatmemory.api.operations import MEMORY_ID, SEQ, addressed_by, changes, reads
from chatmemory.api.permissions import prefix_of
from chatmemory.api.responses import MessageDetailSerializer, RedactedMessageSerializer, response
from chatmemory.api.views.base import Resource
from chatmemory.converters import address
from chatmemory.ledger.snapshots import one_snapshot


@addressed_by(MEMORY_ID, SEQ)
class MemoryMessage(Resource):
    @reads(MessageDetailSerializer, name="get_message")
    def get(self, request: Request, memory_id: str, seq: int) -> Response:
        """Show one message.

        Its content, its stays in memory, and why it left.
        """
        return _message(memory_id, seq)


@addressed_by(MEMORY_ID, SEQ)
class Pin(Resource):
    @changes(MessageDetailSerializer, name="pin_message")
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Pin a message that is in memory.

        What belongs to it is pinned with it: a tool call and its results. It leaves only when
        memory is cleared, or set to a list without it.
        """
        services.pin(memory_id, seq, **requests.changed_by(request))
        return _message(memory_id, seq)

    @changes(MessageDetailSerializer, name="unpin_message")
    def delete(self, request: Request, memory_id: str, seq: int) -> Response:
        """Unpin a message.

        It may leave again when there is no room.
        """
        services.unpin(memory_id, seq, **requests.changed_by(request))
        return _message(memory_id, seq)


@addressed_by(MEMORY_ID, SEQ)
class Redaction(Resource):
    needs = {"POST": ERASE}

    @changes(RedactedMessageSerializer, body=requests.RedactRequest, name="redact_message")
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Redact a message.

        Its text is removed from this conversation for good; a tombstone stays. A second time
        changes nothing. Branches keep their copies unless they are named, and so does the
        conversation that this one is a branch of. The response lists the copies that still have the
        text: redact them where they are.
        """
        chosen = requests.read_body(requests.RedactRequest, request)["branches"]
        with services.atomic():
            queries.memory(memory_id)
            prefix = prefix_of(request)
            # All have to be known for all to be reached; those that are named are found by name.
            known = queries.copies if chosen is True else services.known_copies
            copies = _copies(known(memory_id, seq), prefix)
            named = [copy["id"] for copy in copies or ()] if chosen is True else chosen
            reached = {branch for branch in named if branch.startswith(prefix)}
            made = services.redact(memory_id, seq, branches=reached, **requests.changed_by(request))
        left = copies and [copy for copy in copies if copy["id"] not in reached]
        return _message(memory_id, seq, copies=None if made is None else left)


def _copies(found: Iterable[tuple[str, int]] | None, prefix: str) -> list[dict[str, Any]] | None:
    """The copies of a message in branches that the caller may see; None if they are unknown."""
    if found is None:
        return None
    return [
        {"id": branch, "address": address(branch), "seq": number}
        for branch, number in found
        if branch.startswith(prefix)
    ]


@one_snapshot()
def _message(memory_id: str, seq: int, **more: Any) -> Response:
    """The answer of a message; `more` are members of what it answers after a redaction."""
    shape = RedactedMessageSerializer if more else MessageDetailSerializer
    memory, row = queries.memory(memory_id), queries.message(memory_id, seq)
    left = row.stays[-1].left_step if row.stays else None
    answer = {
        **vars(row),
        "message": row.message,
        "in_memory": bool(row.stays) and left is None,
        "pinned": bool(row.stays) and left is None and row.stays[-1].pinned,
        "why": _why(memory_id, seq, left) if left is not None else None,
        **more,
    }
    return response(shape, answer, version=memory.version)


def _why(memory_id: str, seq: int, left: int) -> dict[str, Any]:
    """The explanation of the step at which the message left."""
    why = explain.why_left(queries.step(memory_id, left).change, seq)
    return {
        "step": left,
        "question": why.question,
        "summary": why.summary,
        "receipt": explain.shortened(why.receipt),
    }
