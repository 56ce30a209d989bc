"""The page of one conversation at any step, and its event stream without ASGI."""

from __future__ import annotations

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from chatmemory import queries, services
from inspector.conversation import ConversationPage
from inspector.forms import DraftForm, searchable
from inspector.htmx import render_page_or_fragment

NUMBER_DIGITS = 18
JUMP = re.compile(rf"#([0-9]{{1,{NUMBER_DIGITS}}})")
POLL_MILLISECONDS = 5_000


@require_safe
def conversation(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation at a step (`?at=`), with a selected message (`?msg=`).

    `?find=` searches for a phrase (`#26` selects that message), `?with=` compares with another
    step, and `?before=` and `?after=` page through the history.
    """
    find = searchable(request.GET.get("find", ""))
    jump = JUMP.fullmatch(find)
    query = queries.ConversationQuery(
        at=_number(request, "at"),
        msg=int(jump[1]) if jump else _number(request, "msg"),
        before=_number(request, "before"),
        after=_number(request, "after"),
        other=_number(request, "with"),
        find="" if jump else find,
    )
    page = ConversationPage(queries.conversation_state(memory_id, query))
    return render_page_or_fragment(
        request,
        "inspector/conversation.html",
        "inspector/_conversation.html",
        {"page": page, "form": DraftForm()},
    )


@require_POST
def redact(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Redacts a message, then shows it."""
    services.redact(memory_id, seq, actor=request.user.get_username())
    return redirect(f"{reverse('conversation', args=[memory_id])}?msg={seq}")


@require_safe
def live(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Sends the newest step as one event, if no ASGI server runs; the browser then polls."""
    return _event(queries.memory(memory_id).last_step)


@require_safe
def live_overview(request: HttpRequest) -> HttpResponse:
    """Sends the time of the newest eviction as one event, if no ASGI server runs."""
    return _event(queries.newest_eviction())


def _event(step: int) -> HttpResponse:
    event = f"retry: {POLL_MILLISECONDS}\nevent: step\nid: {step}\ndata: {step}\n\n"
    return HttpResponse(event, content_type="text/event-stream")


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS:
        raise Http404(f"{name} must be a number")
    return int(text)
