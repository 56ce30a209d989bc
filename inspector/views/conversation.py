"""The page of a conversation at any step, its pins, and the form for summaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import ChatMemoryError, InvalidValue, MessageNotFound, NoRoomBesidePins, services
from chatmemory.reading import conversations, windows
from chatmemory.reading.history import message_by_client_id
from chatmemory.reading.indexes import index_row
from chatmemory.reading.steps import step_at_time
from chatmemory.roles import actor_of
from chatmemory.snapshots import one_snapshot
from inspector.conversation.covering import Covering
from inspector.conversation.guide import guide_of
from inspector.conversation.index import index_preview
from inspector.conversation.links import conversation_url
from inspector.conversation.page import ConversationPage, page_of
from inspector.conversation.state import conversation_state
from inspector.display import render_form, render_page_or_fragment
from inspector.forms.actions import CompactForm
from inspector.forms.fields import number_in_text
from inspector.shell import rooms
from inspector.shell.state import ConversationQuery, ReadValues

PAGE = "inspector/conversation/conversation.html"
NUMBER_DIGITS = 18
OPEN_LENGTH = 100  # characters


@require_safe
def conversation(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation. The URL parameters are:

    - `at`: the step to show.
    - `time`: a time; redirects to the step at this time.
    - `msg`, `client_id`: the selected message, by its number or by the client's ID.
    - `with`: a step to compare with the shown step.
    - `past`: a message number. Lists of differences show only messages with a greater number.
    - `before`, `after`: the part of a long history to show.
    - `replay=1`: in a long history, find the limit that would have kept the selected message.
    - `open`: the names of unfolded sections.
    - parameters of rooms, such as `draft` for a simulation.
    """
    if request.GET.get("time") or request.GET.get("client_id"):
        return redirect(_sought_url(request, memory_id))
    query = _query(request)
    selected, read = rooms.selected(query.room_parameters), ReadValues()
    query = query if selected is None else replace(query, msg=selected)
    with one_snapshot():
        try:
            page = page_of(memory_id, query, read)
        except MessageNotFound:
            if selected is None:
                raise
            page = page_of(memory_id, replace(query, msg=None), read)
        except (InvalidValue, NoRoomBesidePins) as error:  # the policy refuses the drafts
            read["problem"] = str(error)
            msg = query.msg if query.msg is not None and query.msg > 0 else None  # not a draft
            state = conversation_state(memory_id, replace(query, msg=msg), read)
            page = ConversationPage(state)
    context = {"page": page, "guide": guide_of(request, memory_id)}
    return render_page_or_fragment(request, PAGE, context)


@require_POST
def pin(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Pin a message, or unpin it with `pinned=no`. Then show the page with the message selected."""
    change = services.unpin if request.POST.get("pinned") == "no" else services.pin
    change(memory_id, seq, actor=actor_of(request))
    return redirect(conversation_url(memory_id, msg=seq))


@require_http_methods(["GET", "HEAD", "POST"])
def index_term(request: HttpRequest, memory_id: str, seq: int, number: int) -> HttpResponse:
    """Preview the index without a term. If the term is already left out, preview the index with the
    term.

    A POST stores this change. It then redirects to the conversation, where the newest message with
    the term is selected.

    `seq` is the number of the index message. `number` is the position of the term in the index,
    from 1. So no URL contains the term.
    """
    memory = conversations.memory(memory_id)
    row = index_row(memory_id, seq, number)
    if request.method == "POST":
        change = services.list_term if row.is_left_out else services.leave_out_term
        change(memory_id, row.term, actor=actor_of(request))
        return redirect(conversation_url(memory_id, msg=row.last or None))
    preview, problem = None, ""
    try:
        found = services.preview_term(memory_id, row.term, is_listed=row.is_left_out)
        preview = index_preview(found) if found else None
    except ChatMemoryError as error:
        problem = str(error)
    context = {"row": row, "seq": seq, "number": number, "preview": preview, "problem": problem}
    context |= {"memory_id": memory.id}
    return render(request, "inspector/conversation/index_term.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def compact(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the form for a summary. A POST previews the compaction. A POST with the field `store`
    stores it.

    The form also sends a step, and the first and last message to replace, as positions in the
    window after this step. So the choice stays the same when messages arrive or leave later.
    """
    memory, preview = conversations.memory(memory_id), None
    form = CompactForm(request.POST if request.method == "POST" else None)
    step, first, last = map(form.chosen, ("step", "first", "last"))
    covering = Covering(windows.outline(memory_id, step), first, last)
    if form.is_valid():
        summary, terms = form.cleaned_data["summary"], form.cleaned_data["append_terms"]
        chosen: Any = {"covering": covering.seqs, "append_terms": terms}  # of two types
        try:
            if "store" in request.POST:
                services.compact(memory_id, summary, actor=actor_of(request), **chosen)
                return redirect("inspector:conversation", memory_id)
            preview = services.preview_compaction(memory_id, summary, **chosen)
        except ChatMemoryError as error:
            form.add_error(None, str(error))
    if step is not None and not request.htmx:  # type: ignore[attr-defined]  # set by InspectorMiddleware
        covering = Covering.of_seqs(windows.outline(memory_id), covering.seqs)
    return render_form(
        request,
        "inspector/conversation/compact.html",
        form,
        memory=memory,
        covering=covering,
        preview=preview,
    )


def _query(request: HttpRequest) -> ConversationQuery:
    """Read the parameters of a URL."""
    draft = _number(request, "draft")
    return ConversationQuery(
        at=_number(request, "at"),
        msg=-draft if draft else _number(request, "msg"),
        before=_number(request, "before"),
        after=_number(request, "after"),
        other=_number(request, "with"),
        past=_number(request, "past"),
        replay="replay" in request.GET,
        open=_unfolded(request),
        room_parameters=_room_parameters(request),
    )


def _unfolded(request: HttpRequest) -> frozenset[str]:
    """Return the names of the sections that the URL unfolds."""
    names = request.GET.get("open", "")[:OPEN_LENGTH].split()
    return frozenset(name for name in names if name.isascii() and name.isalpha())


def _room_parameters(request: HttpRequest) -> dict[str, str]:
    """Return the URL parameters of rooms. Raises Http404 for a text where a number is needed."""
    kinds = {name: kind for name, kind in rooms.parameters().items() if name in request.GET}
    for name, kind in kinds.items():
        if kind is int:
            _number(request, name)
    return {name: request.GET[name] for name in kinds}


def _sought_url(request: HttpRequest, memory_id: str) -> str:
    """Return the URL of the page for a time or for a client's message ID. The message is shown at
    the step that added it, unless the URL has a step or a time.
    """
    parameters = {name: str(text) for name, text in request.GET.items()}
    time, client_id = parameters.pop("time", ""), parameters.pop("client_id", "")
    if client_id:
        named = message_by_client_id(memory_id, client_id)
        parameters = {"at": str(named.stays[0].entered_step)} | parameters | {"msg": str(named.seq)}
    if time:
        parameters["at"] = str(step_at_time(memory_id, _moment(time)))
    return f"{conversation_url(memory_id)}?{urlencode(parameters)}"


def _moment(text: str) -> datetime:
    """Return the end of the second that a text names, because pages show whole seconds. Without a
    time zone, the site's time zone counts.
    """
    try:
        moment = parse_datetime(text)
        if moment is not None:
            moment = moment if moment.tzinfo else timezone.make_aware(moment)
            return moment.replace(microsecond=moment.microsecond or 999_999).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Http404("'time' in the address must be a date and time such as 2026-11-24T14:32Z")


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    number = number_in_text(text, NUMBER_DIGITS)
    if number is None:
        raise Http404(f"'{name}' in the address must be a whole number")
    return number
