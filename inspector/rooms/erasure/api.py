"""The REST API for the redaction of a message."""

from __future__ import annotations

from collections.abc import Iterable

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatmemory import services
from chatmemory.api import fields
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import changes
from chatmemory.api.requests import Body, Parameters, changed_by
from chatmemory.api.responses import ADDRESS, AddressField, Json, MessageDetailSerializer, SeqsField
from chatmemory.api.views.messages import message_response
from chatmemory.messages.json_values import JsonDict
from chatmemory.reading import conversations
from chatmemory.roles import ERASE
from inspector.rooms.erasure.copies import copies as all_copies
from inspector.rooms.erasure.redaction import known_copies, redact
from inspector.rooms.erasure.terms import summaries_holding


class RedactRequest(Body):
    """The body of a request to redact a message. Copies of the message in the given `branches`, and
    the given `summaries`, are redacted, too.
    """

    branches = fields.BranchesField(
        default=list,
        help_text="The branches in which copies of the text are removed, too: a list of ids, or "
        "true for all branches.",
    )
    summaries = fields.SummariesField(
        default=list,
        help_text="The summaries of the message that are redacted, too: a list of seqs, or true "
        "for all summaries with one of the message's exact terms.",
    )


class CopySerializer(Json):
    """A copy of a message in a branch."""

    id = serializers.CharField(help_text="The id of the branch.")
    address = AddressField(source="id", help_text=ADDRESS)
    seq = serializers.IntegerField()


class RedactedMessageSerializer(MessageDetailSerializer):
    copies = CopySerializer(
        many=True,
        allow_null=True,
        help_text="The copies of the message in branches, which still have its text. Null if "
        "an earlier redaction had removed the text, and while a node of a cluster is down.",
    )
    summaries = SeqsField(
        allow_null=True,
        help_text="The seqs of the summaries that replace the message and still contain one of "
        "its exact terms. Null if an earlier redaction had removed the text of the message.",
    )


class Redaction(Resource):
    needs = {"POST": ERASE}

    @changes(RedactedMessageSerializer, body=RedactRequest, name="redact_message")
    def post(self, request: Request, memory_id: str, seq: int, parameters: Parameters) -> Response:
        """Redact a message.

        The text of the message is permanently removed from this conversation. The message keeps its
        place, with a text such as `[redacted #12]`. A second call changes nothing.

        Branches keep their copies unless the request names these branches. If this conversation is
        itself a branch, the original conversation keeps its copy. The response lists the copies in
        branches that still have the text. To remove the text of such a copy, redact the copy in its
        branch.

        Summaries of the message keep its exact terms unless the request names these summaries. The
        response also lists the summaries that still have such terms.
        """
        chosen, summaries = parameters["branches"], parameters["summaries"]
        with services.atomic():
            conversations.memory(memory_id)
            prefix = prefix_of(request)
            # To redact all of them, all must be known. Named ones are found by name.
            known = all_copies if chosen is True else known_copies
            copies = _copies(known(memory_id, seq), prefix)
            named = [copy["id"] for copy in copies or ()] if chosen is True else chosen
            reached = {branch for branch in named if branch.startswith(prefix)}
            holding = summaries_holding(memory_id, seq)
            result = redact(
                memory_id,
                seq,
                branches=reached,
                summaries=summaries,
                **changed_by(request),
            )
        if result is None:
            return message_response(
                memory_id, seq, RedactedMessageSerializer, copies=None, summaries=None
            )
        left = copies and [copy for copy in copies if copy["id"] not in reached]
        still = [] if summaries is True else [each for each in holding if each not in summaries]
        return message_response(
            memory_id, seq, RedactedMessageSerializer, copies=left, summaries=still
        )


def _copies(found: Iterable[tuple[str, int]] | None, prefix: str) -> list[JsonDict] | None:
    """Return those copies of a message that are in branches the caller may see; None if the copies
    are unknown.
    """
    if found is None:
        return None
    return [{"id": branch, "seq": number} for branch, number in found if branch.startswith(prefix)]


urlpatterns = [
    path(
        "memories/<memory:memory_id>/messages/<int:seq>/redact/", Redaction.as_view(), name="redact"
    ),
]
