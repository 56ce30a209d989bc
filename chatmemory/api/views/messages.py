"""Views of the window that the model sees, of its messages, and of LangChain4j's store protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from chatmemory import services
from chatmemory.api import requests
from chatmemory.api.fields import SentMessages
from chatmemory.api.guard import Resource
from chatmemory.api.openapi import MESSAGES
from chatmemory.api.operations import changes, reads
from chatmemory.api.requests import Parameters
from chatmemory.api.responses import (
    ChangesSerializer,
    LossSerializer,
    MessageChangesSerializer,
    MessageDetailSerializer,
    WindowSerializer,
    response,
    whole_json,
    window_head,
)
from chatmemory.conf import PAGE_MAX
from chatmemory.explain import receipts
from chatmemory.explain.reasons import why_left, why_stub
from chatmemory.formats import Rendering, render_each
from chatmemory.ledger import protocol
from chatmemory.ledger.transaction import Planned
from chatmemory.ledger.validation import check_id
from chatmemory.lint.linter import lint, repair
from chatmemory.lint.repairs import Repaired
from chatmemory.messages.codec import message_to_dict
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage
from chatmemory.reading import conversations, history, steps, windows
from chatmemory.reading.clearings import find_clearing
from chatmemory.reading.rows import MessageDetail
from chatmemory.reading.windows import WindowView, window_in_parts
from chatmemory.services import ChangeResult
from chatmemory.snapshots import one_snapshot
from chatmemory.streaming import json_list


class MemoryMessages(Resource):
    @reads(WindowSerializer, query=requests.WindowQuery, name="get_window", is_conditional=True)
    def get(self, request: Request, memory_id: str, parameters: Parameters) -> HttpResponse:
        """Show what the model sees.

        Returns the whole window, now or after the step `at`. `lint` and `repair` name a provider.
        With `lint`, `findings` lists what this provider would reject or may mishandle. With
        `repair`, the response has a repaired window that this provider accepts. The stored window
        stays as it is.

        If-None-Match works only without `at`, `lint` and `repair`.
        """
        if parameters.keys() == {"as"} and (unchanged := _not_modified(request, memory_id)):
            return unchanged
        step, answer = _window_answer(memory_id, parameters)
        if "at" not in parameters:
            # The newest step is the version.
            answer["ETag"] = f'"{step}"'
        return answer

    @changes(MessageChangesSerializer, status=201, body=requests.AddRequest, name="add_messages")
    def post(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Add messages.

        Each message is a separate step, and the policy evicts messages beyond its limit. Either all
        messages are stored or none.
        """
        results = services.add(memory_id, parameters["new"], **requests.changed_by(request))
        return _changes(memory_id, results, parameters["sent"], status=201)

    @changes(MessageChangesSerializer, body=requests.MessagesRequest, name="set_window")
    def put(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Replace the window.

        The messages of the body become the window. Those that were not in the window before are
        added to the history. The policy evicts messages beyond its limit.
        """
        sent, by = parameters["sent"], requests.changed_by(request)
        result = _written(parameters, lambda: services.plan_list(memory_id, sent.messages, **by))
        return _changes(memory_id, [result], sent)

    @changes(ChangesSerializer, name="clear_window")
    def delete(self, request: Request, memory_id: str) -> Response:
        """Clear the window.

        The history keeps all messages.
        """
        result = services.clear_messages(memory_id, **requests.changed_by(request))
        return _changes(memory_id, [result])


def _not_modified(request: Request, memory_id: str) -> HttpResponse | None:
    """Return a response 304 if the caller already has the current version, else None. Raises
    MemoryNotFound.
    """
    if "If-None-Match" not in request.headers:
        return None
    version = conversations.memory(memory_id).version
    if not requests.has_version(request, version):
        return None
    return HttpResponse(status=304, headers={"ETag": f'"{version}"'})


@one_snapshot()
def _window_answer(memory_id: str, parameters: Parameters) -> tuple[int, HttpResponse]:
    """Return the number of the step after which the window is shown, and the response with the
    window.
    """
    at, lint_for, repair_for = (parameters.get(name) for name in ("at", "lint", "repair"))
    if lint_for is None and repair_for is None:
        window, messages = window_in_parts(memory_id, at)
        return window.step, whole_json(
            _window(memory_id, window, render_each(messages, parameters["as"]))
        )
    checked = windows.window(memory_id, at)
    messages, more = _checked(checked, lint_for, repair_for)
    rendering = render_each(messages, parameters["as"])
    return checked.step, whole_json(_window(memory_id, checked, rendering, more))


def _checked(
    window: WindowView, lint_for: str | None, repair_for: str | None
) -> tuple[Iterable[ChatMessage], JsonDict]:
    """Return the messages of a window, and members of the response: the repairs for the provider
    `repair_for`, and the objections of the provider `lint_for`.
    """
    messages, seqs = window.messages, window.seqs
    found = Repaired(messages, range(len(messages)))
    more: JsonDict = {}
    if repair_for is not None:
        found = repair(messages, provider=repair_for, numbers=seqs)
        more["repair"] = {
            "provider": repair_for,
            "seqs": [None if source is None else seqs[source] for source in found.sources],
            "done": [{**vars(each), "seq": seqs[each.position]} for each in found.done],
        }
    findings = found.left
    if lint_for not in (None, repair_for):
        numbers = [0 if source is None else seqs[source] for source in found.sources]
        findings = lint(found.messages, provider=lint_for, numbers=numbers)
    return found.messages, {"findings": findings[:PAGE_MAX], **more}


def _window(
    memory_id: str,
    window: WindowView,
    rendering: Rendering,
    more: JsonDict | None = None,
) -> Iterator[str]:
    """Yield the JSON of a window in parts, with the members `more` at the beginning. Losses of the
    format come after the messages.
    """
    yield _json(window_head(memory_id, window, more)).removesuffix("}") + ',"messages":'
    yield from json_list(rendering.values)
    if rendering.beside:
        yield f',"beside":{json.dumps(rendering.beside, ensure_ascii=False)}'
    yield ',"lost":' + _json(LossSerializer(rendering.losses[:PAGE_MAX], many=True)) + "}"


def _written(parameters: Parameters, plan: Callable[[], Planned[ChangeResult]]) -> ChangeResult:
    """Write a change and return it. A plan that was made before the lock is used if there
    is one.
    """
    return (parameters.get("planned") or plan()).write()


def _json(serializer: BaseSerializer[Any]) -> str:  # of values of any type
    return JSONRenderer().render(serializer.data).decode()


def _changes(
    memory_id: str,
    results: Sequence[ChangeResult],
    sent: SentMessages | None = None,
    status: int = 200,
) -> Response:
    """Return the response about changes. Its version is the last step of the changes, or the
    current step if all changes were ignored.
    """
    version = max((each.step for each in results if each.step), default=None)
    if version is None:
        version = conversations.memory(memory_id).version
    answer: dict[str, object] = {"version": version, "changes": results}
    if sent is None:
        return response(ChangesSerializer, answer, version=version)
    answer["lost"] = sent.losses[:PAGE_MAX]
    return response(MessageChangesSerializer, answer, status=status, version=version)


class MemoryMessage(Resource):
    @reads(MessageDetailSerializer, name="get_message", is_conditional=True)
    def get(self, request: Request, memory_id: str, seq: int) -> HttpResponse:
        """Show one message.

        Returns its content, the periods in which it was in memory, and why it left.
        """
        answer = message_response(memory_id, seq)
        return _not_modified(request, memory_id) or answer


class Pin(Resource):
    @changes(MessageDetailSerializer, name="pin_message")
    def post(self, request: Request, memory_id: str, seq: int) -> Response:
        """Pin a message that is in memory.

        A tool call and its results are pinned together. A pinned message leaves only when memory is
        cleared, or set to a list without it.
        """
        services.pin(memory_id, seq, **requests.changed_by(request))
        return message_response(memory_id, seq)

    @changes(MessageDetailSerializer, name="unpin_message")
    def delete(self, request: Request, memory_id: str, seq: int) -> Response:
        """Unpin a message.

        From now on, the policy may evict the message.
        """
        services.unpin(memory_id, seq, **requests.changed_by(request))
        return message_response(memory_id, seq)


class Compaction(Resource):
    @changes(ChangesSerializer, body=requests.CompactRequest, name="compact_memory")
    def post(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Replace messages by a summary.

        The messages leave memory with the reason SUMMARIZED and stay in history. The summary stands
        at the position of the first replaced message. It leaves only when another summary replaces
        it, or when memory is cleared or set to a list without it.
        """
        chosen = {**parameters, **requests.changed_by(request)}
        result = _written(parameters, lambda: services.plan_compaction(memory_id, **chosen))
        return _changes(memory_id, [result])


@one_snapshot()
def message_response(
    memory_id: str,
    seq: int,
    shape: type[MessageDetailSerializer] = MessageDetailSerializer,
    **more: object,
) -> Response:
    """Return the response that shows a message. `more` has values for further fields that `shape`
    declares.
    """
    memory, row = conversations.memory(memory_id), history.message(memory_id, seq)
    left = row.stays[-1].left_step if row.stays else None
    answer = {
        **vars(row),
        "message": row.message,
        "in_memory": bool(row.stays) and left is None,
        "pinned": bool(row.stays) and left is None and row.stays[-1].pinned,
        "why": _why(row, memory.last_step),
        **more,
    }
    return response(shape, answer, version=memory.version)


def _why(row: MessageDetail, at: int) -> dict[str, object] | None:
    """Return why a message left memory, or why a placeholder replaced its tool result. None if
    neither happened.
    """
    departure, clearing = row.departure(at), find_clearing(row, at)
    if departure is not None and departure.left_step is not None:
        change = steps.step(row.memory_id, departure.left_step).change
        why = why_left(change, row.seq)
    elif clearing is not None:
        change = clearing.change
        why = why_stub(clearing, row.seq)
    else:
        return None
    return {
        "step": change.step,
        "question": why.question,
        "summary": why.summary,
        "receipt": receipts.shortened(why.receipt),
    }


class Store(Resource):
    # The ChatMemoryStore protocol: a bare array of LangChain4j's JSON in and out.
    @reads(MESSAGES, name="get_messages")
    def get(self, request: Request, memory_id: str) -> HttpResponse:
        """Return the messages in memory (getMessages).

        The list also has messages that are stored in the window but hidden from the model, such as
        those over a lowered limit. For an unknown id the list is empty.
        """
        with one_snapshot():
            messages = protocol.messages_in_parts(check_id(memory_id))
            return whole_json(json_list(map(message_to_dict, messages)))

    @changes(None, status=204, body=requests.ListRequest, name="update_messages")
    def put(self, request: Request, memory_id: str, parameters: Parameters) -> Response:
        """Replace the messages in memory (updateMessages).

        If the id is unknown, the conversation is created.
        """
        messages, by = parameters["sent"].messages, requests.changed_by(request)
        _written(parameters, lambda: protocol.plan_update(memory_id, messages, **by))
        return Response(status=204)

    @changes(None, status=204, name="delete_messages")
    def delete(self, request: Request, memory_id: str) -> Response:
        """Clear the window (deleteMessages).

        The history keeps all messages.
        """
        protocol.delete_messages(memory_id, **requests.changed_by(request))
        return Response(status=204)
