"""The REST API, one class per resource. Thin: reads ask queries, writes go to services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from chatmemory import explain, queries, services
from chatmemory.access.roles import ERASE, READ
from chatmemory.api import schemas
from chatmemory.api import serializers as shapes
from chatmemory.api.authentication import BearerTokenAuthentication
from chatmemory.api.filters import MemoryFilter
from chatmemory.api.idempotency import idempotent
from chatmemory.api.pagination import (
    ORDERINGS,
    PAGE_MAX,
    MemoryPagination,
    number,
    page_size,
)
from chatmemory.api.parsers import StrictJSONParser
from chatmemory.api.permissions import HasRole, check_prefix, prefix_of
from chatmemory.api.problems import InvalidField, problem_details
from chatmemory.conf import configuration
from chatmemory.core.codec import message_to_dict
from chatmemory.core.policies import KINDS
from chatmemory.formats import FORMATS, Loss, render_messages
from chatmemory.managers import CLIENT, MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.services import ChangeResult, protocol
from chatmemory.services.validation import check_id

_AT = OpenApiParameter("at", OpenApiTypes.INT, description="a step; without it, now")
_AS = OpenApiParameter("as", OpenApiTypes.STR, enum=list(FORMATS), default="langchain4j")
_IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description='a version: "12"'
)
_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="sent again with the same request, it is answered as the first time",
)
_LIST = [
    OpenApiParameter("search", OpenApiTypes.STR, description="in the id or in what was said"),
    OpenApiParameter("policy", OpenApiTypes.STR, enum=[*KINDS, CLIENT]),
    OpenApiParameter("label", OpenApiTypes.STR, description="name, or name:value"),
    OpenApiParameter("active_since", OpenApiTypes.DATETIME),
    OpenApiParameter("active_before", OpenApiTypes.DATETIME),
    OpenApiParameter(
        "ordering",
        OpenApiTypes.STR,
        enum=[sign + name for name in ORDERINGS for sign in ("", "-")],
        default="-activity",
    ),
    OpenApiParameter("page_size", OpenApiTypes.INT, description=f"at most {PAGE_MAX}"),
    OpenApiParameter("cursor", OpenApiTypes.STR, description="from `next` or `previous`"),
]
_SEQS = [
    OpenApiParameter(name, OpenApiTypes.INT) for name in ("at", "before", "after", "around", "size")
]
_PROBLEM: dict[Any, Any] = {
    (status, "application/problem+json"): shapes.ProblemAnswer for status in ("4XX", 503)
}


class Guarded(APIView):
    """What each view brings along, whatever REST framework's settings of the project say: nobody
    gets in without a role, tokens are known, and errors are problem details.
    """

    authentication_classes = (BearerTokenAuthentication, *APIView.authentication_classes)
    permission_classes = (HasRole,)

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return problem_details


class Schema(Guarded, SpectacularAPIView):
    """OpenAPI."""


class Docs(Guarded, SpectacularSwaggerSplitView):
    """OpenAPI as pages."""


class Resource(Guarded):
    """JSON in and out, read strictly."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)


class Memories(Resource, GenericAPIView[Memory]):
    """Conversations."""

    serializer_class = shapes.MemoryAnswer
    pagination_class = MemoryPagination
    filterset_class = MemoryFilter

    def get_queryset(self) -> MemoryQuerySet:
        return Memory.objects.beginning_with(prefix_of(self.request))

    @extend_schema(
        operation_id="memories_list",
        parameters=_LIST,
        responses={200: shapes.MemoryPageAnswer, **_PROBLEM},
    )
    def get(self, request: Request) -> Response:
        filters = MemoryFilter(request.query_params, queryset=self.get_queryset())
        if not filters.is_valid():
            name, words = next(iter(filters.errors.items()))
            raise InvalidField(name, " ".join(words))
        page = self.paginate_queryset(filters.qs) or []
        rows = [queries.memory_row(row) for row in page]
        return self.get_paginated_response(shapes.MemoryAnswer(rows, many=True).data)

    @extend_schema(
        request=shapes.BodyOfMemory,
        parameters=[_KEY],
        responses={201: shapes.MemoryAnswer, **_PROBLEM},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        body = _read(shapes.BodyOfMemory, request)
        check_prefix(request, body["id"])
        row = services.create(body["id"], body["policy"], body.get("labels"), actor=_actor(request))
        response = _memory(queries.memory_row(row), status=201)
        response["Location"] = _url(request, "memory", body["id"])
        return response


class MemoryDetail(Resource):
    """One conversation."""

    needs = {"DELETE": ERASE}

    @extend_schema(responses={200: shapes.MemoryAnswer, **_PROBLEM})
    def get(self, request: Request, memory_id: str) -> Response:
        return _memory(queries.memory(memory_id))

    @extend_schema(
        request=shapes.BodyOfChange,
        parameters=[_IF_MATCH, _KEY],
        responses={200: shapes.MemoryAnswer, **_PROBLEM},
    )
    @idempotent
    def patch(self, request: Request, memory_id: str) -> Response:
        """Change the policy or the labels, as a step."""
        body = _read(shapes.BodyOfChange, request)
        row = services.change(
            memory_id,
            policy=body.get("policy"),
            labels=body.get("labels"),
            actor=_actor(request),
            expected_version=_expected_version(request),
        )
        return _memory(queries.memory_row(row))

    @extend_schema(parameters=[_IF_MATCH, _KEY], responses={204: None, **_PROBLEM})
    @idempotent
    def delete(self, request: Request, memory_id: str) -> Response:
        """Erase the conversation with its history. This cannot be undone."""
        services.delete(
            memory_id, actor=_actor(request), expected_version=_expected_version(request)
        )
        return Response(status=204)


class MemoryMessages(Resource):
    """The window."""

    @extend_schema(
        operation_id="window",
        parameters=[_AT, _AS],
        responses={200: shapes.WindowAnswer, **_PROBLEM},
    )
    def get(self, request: Request, memory_id: str) -> Response:
        """What the model sees, now or at a step."""
        view = queries.window(memory_id, number(request, "at"))
        rendered = render_messages(view.messages, request.query_params.get("as", "langchain4j"))
        return Response(
            {
                "step": view.step,
                "policy": view.policy.to_dict() if view.policy else None,
                "messages": rendered.value,
                "seqs": [row.seq for row in view.rows],
                "totals": shapes.TotalsAnswer(view.totals).data,
                "load": view.load,
                "limit": view.policy.limit if view.policy else None,
                "beyond": [row.seq for row in view.over_limit],
                "lost": _lost(rendered.losses),
            }
        )

    @extend_schema(
        request=shapes.BodyOfMessages,
        parameters=[_IF_MATCH, _KEY],
        responses={201: shapes.TransitionsAnswer, **_PROBLEM},
    )
    @idempotent
    def post(self, request: Request, memory_id: str) -> Response:
        """Add messages, one step each; all are stored or none."""
        body = shapes.BodyOfMessages(data=request.data)
        body.is_valid(raise_exception=True)
        outcomes = services.add(
            memory_id,
            body.said(),
            actor=_actor(request),
            expected_version=_expected_version(request),
        )
        return _transitions(memory_id, outcomes, 201)

    @extend_schema(
        request=shapes.BodyOfMessages,
        parameters=[_IF_MATCH, _KEY],
        responses={200: shapes.TransitionsAnswer, **_PROBLEM},
    )
    @idempotent
    def put(self, request: Request, memory_id: str) -> Response:
        """Replace the window; the policy trims what exceeds it."""
        body = shapes.BodyOfMessages(data=request.data)
        body.is_valid(raise_exception=True)
        outcome = services.set_messages(
            memory_id,
            [each.message for each in body.said()],
            actor=_actor(request),
            expected_version=_expected_version(request),
        )
        return _transitions(memory_id, [outcome], 200)

    @extend_schema(
        parameters=[_IF_MATCH, _KEY], responses={200: shapes.TransitionsAnswer, **_PROBLEM}
    )
    @idempotent
    def delete(self, request: Request, memory_id: str) -> Response:
        """Empty the window; the history stays."""
        outcome = services.clear_messages(
            memory_id, actor=_actor(request), expected_version=_expected_version(request)
        )
        return _transitions(memory_id, [outcome], 200)


class MemoryHistory(Resource):
    @extend_schema(parameters=_SEQS, responses={200: shapes.HistoryAnswer, **_PROBLEM})
    def get(self, request: Request, memory_id: str) -> Response:
        """Everything said, by seq; `earlier` and `later` lead on both ways."""
        size = page_size(request, configuration().PAGE_SIZE)
        at = number(request, "at")
        before, after, around = (number(request, name) for name in ("before", "after", "around"))
        page = queries.history(memory_id, queries.Part(before, after, around, size), at)
        keep = f"&size={size}" + (f"&at={at}" if at is not None else "")
        here = _url(request, "history", memory_id)
        earlier = f"{here}?before={page.rows[0].seq}{keep}" if page.has_earlier else None
        later = f"{here}?after={page.rows[-1].seq}{keep}" if page.has_later else None
        rows = shapes.HistoryMessage(page.rows, many=True).data
        return Response({"messages": rows, "earlier": earlier, "later": later})


class MemorySteps(Resource):
    @extend_schema(
        parameters=[OpenApiParameter(name, OpenApiTypes.INT) for name in ("after", "size")],
        responses={200: shapes.StepsAnswer, **_PROBLEM},
    )
    def get(self, request: Request, memory_id: str) -> Response:
        """The ledger in order."""
        size = page_size(request, configuration().PAGE_SIZE)
        rows = queries.steps(memory_id, after=number(request, "after") or 0, size=size + 1)
        here = _url(request, "steps", memory_id)
        later = f"{here}?after={rows[size - 1].n}&size={size}" if len(rows) > size else None
        return Response({"steps": shapes.StepAnswer(rows[:size], many=True).data, "later": later})


class MemoryStep(Resource):
    @extend_schema(operation_id="step", responses={200: shapes.StepDetailAnswer, **_PROBLEM})
    def get(self, request: Request, memory_id: str, n: int) -> Response:
        """One step: what arrived, what left and why, and the sum."""
        detail = queries.step(memory_id, n)
        change = detail.change
        return Response(
            {
                **shapes.StepAnswer(detail.row).data,
                "words": explain.caption(change).summary,
                "arrived": [each.seq for each in change.arrived],
                "left": shapes.LeftAnswer(change.evicted, many=True).data,
                "receipt": shapes.ReceiptAnswer(explain.receipt(change), many=True).data,
            }
        )


class MemoryMessage(Resource):
    @extend_schema(operation_id="message", responses={200: shapes.MessageAnswer, **_PROBLEM})
    def get(self, request: Request, memory_id: str, seq: int) -> Response:
        """One message: what was said, its stays in memory, and why it left."""
        return _message(memory_id, seq)


class Redaction(Resource):
    """A message without its words."""

    needs = {"POST": ERASE}

    @extend_schema(
        operation_id="redact",
        request=None,
        parameters=[_IF_MATCH, _KEY],
        responses={200: shapes.MessageAnswer, **_PROBLEM},
    )
    @idempotent
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Take its words away everywhere, for good; a tombstone stays. Twice is once."""
        services.redact(
            memory_id,
            seq,
            actor=_actor(request),
            expected_version=_expected_version(request),
        )
        return _message(memory_id, seq)


class Simulate(Resource):
    needs = {"POST": READ}

    @extend_schema(
        request=shapes.BodyOfSimulation, responses={200: shapes.SimulationAnswer, **_PROBLEM}
    )
    def post(self, request: Request, memory_id: str) -> Response:
        """What adding would do, under this policy or another; nothing is saved."""
        body = shapes.BodyOfSimulation(data=request.data)
        body.is_valid(raise_exception=True)
        simulation = queries.simulate(
            memory_id,
            [each.message for each in body.said()],
            body.validated_data.get("policy"),
            body.validated_data.get("at"),
        )
        return Response(
            {
                "policy": simulation.policy.to_dict(),
                "transitions": shapes.ChangeAnswer(simulation.changes, many=True).data,
                "window": shapes.TotalsAnswer(simulation.totals).data,
                "limit": simulation.policy.limit,
                "load": simulation.policy.load(*simulation.totals),
            }
        )


class Store(Resource):
    """The ChatMemoryStore protocol: a bare LangChain4j JSON array in and out."""

    @extend_schema(operation_id="store_get", responses={200: schemas.MESSAGES, **_PROBLEM})
    def get(self, request: Request, memory_id: str) -> Response:
        """The open messages, untrimmed; [] for an unknown id."""
        check_id(memory_id)
        return Response([message_to_dict(m) for m in protocol.get_messages(memory_id)])

    @extend_schema(
        operation_id="store_update",
        request={"application/json": schemas.MESSAGES},
        parameters=[_IF_MATCH, _KEY],
        responses={204: None, **_PROBLEM},
    )
    @idempotent
    def put(self, request: Request, memory_id: str) -> Response:
        """updateMessages: the client hands over the whole list."""
        messages = shapes.read_messages(request.data, "langchain4j", field="")
        protocol.update_messages(
            memory_id,
            messages,
            actor=_actor(request),
            expected_version=_expected_version(request),
        )
        return Response(status=204)

    @extend_schema(
        operation_id="store_delete",
        parameters=[_IF_MATCH, _KEY],
        responses={204: None, **_PROBLEM},
    )
    @idempotent
    def delete(self, request: Request, memory_id: str) -> Response:
        """deleteMessages: clears the window, keeps the history."""
        protocol.delete_messages(
            memory_id, actor=_actor(request), expected_version=_expected_version(request)
        )
        return Response(status=204)


# What the views share


def _message(memory_id: str, seq: int) -> Response:
    row = queries.message(memory_id, seq)
    in_memory = bool(row.stays) and row.stays[-1].left_step is None
    return Response(
        {
            **shapes.HistoryMessage(row).data,
            "redacted": shapes.RedactionAnswer(row.redacted).data if row.redacted else None,
            "origin": row.origin,
            "in_memory": in_memory,
            "why": None if in_memory else _why(memory_id, row),
        }
    )


def _read(shape: type[shapes.StrictSerializer], request: Request) -> dict[str, Any]:
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    values: dict[str, Any] = body.validated_data
    return values


def _memory(row: queries.MemoryRow, status: int = 200) -> Response:
    response = Response(shapes.MemoryAnswer(row).data, status=status)
    response["ETag"] = f'"{row.version}"'
    return response


def _transitions(memory_id: str, outcomes: list[ChangeResult], status: int) -> Response:
    """The version is the last step that the call made, or now where it made none."""
    version = max((each.step for each in outcomes if each.step), default=None)
    if version is None:
        version = queries.memory(memory_id).version
    answer = {"version": version, "transitions": shapes.ChangeAnswer(outcomes, many=True).data}
    response = Response(answer, status=status)
    response["ETag"] = f'"{version}"'
    return response


def _why(memory_id: str, row: queries.MessageRow) -> dict[str, Any] | None:
    left = row.stays[-1].left_step if row.stays else None
    if left is None:
        return None
    why = explain.why_left(queries.step(memory_id, left).change, row.seq)
    receipt = shapes.ReceiptAnswer(why.receipt, many=True).data
    return {"step": left, "question": why.question, "words": why.summary, "receipt": receipt}


def _lost(losses: tuple[Loss, ...]) -> list[dict[str, str]]:
    return [{"where": loss.where, "what": loss.what} for loss in losses]


def _actor(request: Request) -> str:
    return str(request.user.get_username())


def _expected_version(request: Request) -> int | None:
    """The version in If-Match; `*` and no header ask for none. Raises InvalidField."""
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    version = header.removeprefix("W/").strip('"')
    if not version.isascii() or not version.isdigit() or len(version) > 18:
        raise InvalidField("If-Match", 'If-Match holds a version such as "12"')
    return int(version)


def _url(request: Request, name: str, memory_id: str) -> str:
    return reverse(f"api:{name}", kwargs={"memory_id": memory_id}, request=request)
