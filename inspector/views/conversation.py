"""One conversation: history beside memory, at any step."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from chatmemory import queries
from chatmemory.core.exceptions import MemoryNotFound, MessageNotFound, StepNotFound
from inspector.conversation import ConversationPage
from inspector.forms import DraftForm
from inspector.htmx import render_page_or_fragment, searchable

NUMBER_DIGITS = 18
POLL_MILLISECONDS = 5_000


@require_safe
def conversation(request: HttpRequest, memory_id: str) -> HttpResponse:
    """`?at=` a step, `?msg=` a message; `?before=` and `?after=` page through the history.

    `?find=` asks whether memory still holds a phrase, `?with=` compares with another step.
    """
    try:
        page = ConversationPage(
            memory_id,
            at=_number(request, "at"),
            msg=_number(request, "msg"),
            before=_number(request, "before"),
            after=_number(request, "after"),
            other=_number(request, "with"),
            find=searchable(request.GET.get("find", "")),
        )
    except (MemoryNotFound, StepNotFound, MessageNotFound) as error:
        raise Http404(str(error)) from error
    return render_page_or_fragment(
        request,
        "inspector/conversation.html",
        "inspector/_conversation.html",
        {"page": page, "form": DraftForm()},
    )


@require_safe
def live(request: HttpRequest, memory_id: str) -> HttpResponse:
    """The stream's stand-in where no ASGI server runs: one event, and come back in a while."""
    try:
        step = queries.memory(memory_id).steps
    except MemoryNotFound as error:
        raise Http404(str(error)) from error
    event = f"retry: {POLL_MILLISECONDS}\nevent: step\nid: {step}\ndata: {step}\n\n"
    return HttpResponse(event, content_type="text/event-stream")


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS:
        raise Http404(f"{name} must be a number")
    return int(text)
