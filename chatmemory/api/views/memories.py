"""Conversations: list, create, show, change and delete."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from chatmemory import services
from chatmemory.api import requests
from chatmemory.api.errors import ID_NOT_ENCODED, field_at_fault
from chatmemory.api.guard import Resource, prefix_of
from chatmemory.api.operations import IDEMPOTENCY_KEY, LOCATION, changes, reads
from chatmemory.api.requests import Parameters
from chatmemory.api.responses import MemoryPageSerializer, MemorySerializer, response, with_query
from chatmemory.flags import flag_named
from chatmemory.reading import conversations
from chatmemory.reading.cursors import CursorPage
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import memory_page
from chatmemory.reading.rows import memory_row
from chatmemory.roles import ERASE, actor_of


class Memories(Resource):
    @reads(MemoryPageSerializer, query=requests.MemoryListQuery, name="list_memories")
    def get(self, request: Request, parameters: Parameters) -> Response:
        """List conversations.

        The conversations with the latest activity come first unless `ordering` says otherwise.
        `next` and `previous` are the URLs of the adjacent pages. With `count=true`, `count` is the
        number of all matching conversations.
        """
        paging = {name: parameters.pop(name) for name in ("ordering", "size")}
        cursor, is_counted = parameters.pop("cursor", ""), parameters.pop("count")
        if parameters.get("flag"):
            parameters["flag"] = flag_named(parameters["flag"])
        which = MemoryFilter(**parameters, id_prefix=prefix_of(request))
        with field_at_fault("cursor"):
            page = memory_page(which, cursor=cursor, **paging)
        count = which.rows().count() if is_counted else None
        return response(MemoryPageSerializer, {"count": count} | _listed(request, page))

    @changes(
        MemorySerializer,
        status=201,
        body=requests.CreateMemoryRequest,
        headers=[IDEMPOTENCY_KEY, LOCATION],
        name="create_memory",
    )
    def post(self, request: Request, parameters: Parameters) -> Response:
        """Create an empty conversation.

        If the body has no policy, the conversation gets the default policy for its id.
        """
        memory_id, labels = parameters["id"], parameters.get("labels")
        if not memory_id.startswith(prefix := prefix_of(request)):
            raise PermissionDenied(f"this token may only create ids that begin with {prefix!r}")
        policy = parameters.get("policy")
        if "policy" not in parameters:
            with field_at_fault("policy"):
                policy = services.chosen_policy(memory_id, "default")
        row = services.create(memory_id, policy, labels, actor=actor_of(request))
        answer = response(MemorySerializer, memory_row(row), status=201, version=row.version)
        names = {"memory_id": memory_id}
        answer["Location"] = reverse("chatmemory:memory", kwargs=names, request=request)
        return answer


def _listed(request: Request, page: CursorPage[object]) -> dict[str, object]:
    """Return a page of conversations, with links to the pages beside it."""
    return {
        "next": with_query(request, cursor=page.next) if page.next else None,
        "previous": with_query(request, cursor=page.previous) if page.previous else None,
        "results": page.rows,
    }


class MemoryDetail(Resource):
    needs = {"DELETE": ERASE}

    @reads(MemorySerializer, name="get_memory")
    def get(self, request: Request, memory_id: str) -> Response:
        """Show one conversation.

        Returns its policy, its labels, and the totals of its history and its window.
        """
        row = conversations.memory(memory_id)
        return response(MemorySerializer, row, version=row.version)

    @changes(MemorySerializer, body=requests.ChangeMemoryRequest, name="change_memory")
    def patch(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Change the policy, the labels or both.

        Each change is a step. Members that are left out stay as they are.
        """
        row = services.change(memory_id, **parameters, **requests.changed_by(request))
        return response(MemorySerializer, memory_row(row), version=row.version)

    @changes(None, status=204, name="delete_memory")
    def delete(self, request: Request, memory_id: str) -> Response:
        """Delete a conversation.

        This also deletes its whole history. A deletion cannot be undone.
        """
        services.delete(memory_id, **requests.changed_by(request))
        return Response(status=204)


@login_not_required
@csrf_exempt
def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    """Answer 404 to URLs below `memories/` and `store/` that no other pattern matches, such as a
    URL without its last slash.

    Without this view, Django would redirect to the URL with a slash. That could lead to another
    conversation: a client that does not encode the id `order#7` requests `memories/order`.
    """
    return ID_NOT_ENCODED.to_http_response()
