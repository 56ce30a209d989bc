"""The page of one conversation at any step, and its event stream without ASGI."""

from __future__ import annotations

import re
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from chatmemory import (
    InvalidValue,
    MemoryNotFound,
    MessageNotFound,
    NoRoomBesidePins,
    queries,
    services,
)
from chatmemory.access.actors import actor_of
from inspector.conversation import ConversationPage, conversation_url
from inspector.forms import DraftForm, searchable
from inspector.htmx import render_page_or_fragment

NUMBER_DIGITS = 18
JUMP = re.compile(rf"#([0-9]{{1,{NUMBER_DIGITS}}})")
POLL_MILLISECONDS = 5_000


@require_safe
def conversation(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation at a step (`?at=`), with a selected message (`?msg=`).

    `?find=` searches for a phrase (`#26` selects that message), `?with=` compares with another
    step and lists the messages above `?past=`, `?before=` and `?after=` page through the history,
    and `?replay=1` computes what would have kept the selected message in a long history. `?trial=`
    simulates the drafts and the limit of a trial, `?draft=` selects one of its drafts, and `?edit=`
    is one to be edited.
    """
    query, jump = _asked(request)
    trial, problem = _trial(request, memory_id), ""
    try:
        state = queries.simulated_state(memory_id, query, trial)
    except MessageNotFound:
        if not jump:
            raise
        query = replace(query, msg=None, find=jump)
        state = queries.simulated_state(memory_id, query, trial)
    except (InvalidValue, NoRoomBesidePins) as error:  # the policy refuses what is tried
        problem = str(error)
        state = queries.conversation_state(memory_id, replace(query, msg=_message(query.msg)))
    page = ConversationPage(state)
    return render_page_or_fragment(
        request,
        "inspector/conversation.html",
        {"page": page, "form": DraftForm.of(trial, _number(request, "edit")), "problem": problem},
    )


@require_POST
def pin(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Pins or unpins a message, then shows it."""
    change = services.unpin if request.POST.get("pinned") == "no" else services.pin
    change(memory_id, seq, actor=actor_of(request))
    return redirect(conversation_url(memory_id, msg=seq))


@require_POST
def redact(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Redacts a message, then shows it. Asks first if branches have copies of it, or may have some
    on a node that is down.
    """
    copies = services.known_copies(memory_id, seq)
    if copies != [] and "confirmed" not in request.POST:
        context = {"memory_id": memory_id, "seq": seq, "copies": copies}
        return render(request, "inspector/redact.html", context)
    branches = request.POST.getlist("branch")
    services.redact(memory_id, seq, actor=actor_of(request), branches=branches)
    return redirect(f"{reverse('inspector:conversation', args=[memory_id])}?msg={seq}")


@require_safe
def live(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Sends the newest step as one event, if no ASGI server runs; the browser then polls.

    With `?made=`, another conversation of the name is not found.
    """
    memory = queries.memory(memory_id)
    if request.GET.get("made") not in (None, str(queries.microseconds(memory.created_at))):
        raise MemoryNotFound(f"{memory_id!r} was deleted and made anew")
    return _event(memory.last_step)


@require_safe
def live_overview(request: HttpRequest) -> HttpResponse:
    """Sends the time of the newest change or erasure as one event, if no ASGI server runs."""
    return _event(queries.newest_change_or_erasure())


def _event(step: int) -> HttpResponse:
    event = f"retry: {POLL_MILLISECONDS}\nevent: step\nid: {step}\ndata: {step}\n\n"
    return HttpResponse(event, content_type="text/event-stream")


def _asked(request: HttpRequest) -> tuple[queries.ConversationQuery, str]:
    """Return what the address asks for, and the search that selects a message instead."""
    find = searchable(request.GET.get("find", ""))
    jump = JUMP.fullmatch(find)
    query = queries.ConversationQuery(
        at=_number(request, "at"),
        msg=int(jump[1]) if jump else _selected(request),
        before=_number(request, "before"),
        after=_number(request, "after"),
        other=_number(request, "with"),
        past=_number(request, "past"),
        find="" if jump else find,
        replay="replay" in request.GET,
    )
    return query, find if jump else ""


def _message(selected: int | None) -> int | None:
    """Return the selected message, or None if a draft is selected."""
    return selected if selected is not None and selected > 0 else None


def _selected(request: HttpRequest) -> int | None:
    """Return the selected message, or the selected draft as a negative number."""
    draft = _number(request, "draft")
    return -draft if draft else _number(request, "msg")


def _trial(request: HttpRequest, memory_id: str) -> queries.WhatIf | None:
    key = searchable(request.GET.get("trial", ""))
    trial = queries.trial(memory_id, key) if key else None
    if key and trial is None:
        raise Http404("this simulation is no longer kept")
    return trial


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS:
        raise Http404(f"in the address, '{name}' must be a number")
    return int(text)
