"""Live updates for sites without an ASGI server. Each response has a single event, and ends without
waiting for news. After five seconds, the browser requests the next event.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from chatmemory import MemoryNotFound
from chatmemory.reading import conversations, feed
from chatmemory.reading.feed import newest_change_or_erasure

POLL_MILLISECONDS = 5_000


@require_safe
def live(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Send the number of the newest step of a conversation as one event.

    `?made=` is the creation time of the conversation that the browser shows, in microseconds since
    1970. If the stored conversation has another creation time, it was deleted and created again.
    Then the answer is 404.
    """
    memory = conversations.memory(memory_id)
    if request.GET.get("made") not in (None, str(feed.microseconds(memory.created_at))):
        raise MemoryNotFound(f"{memory_id!r} was deleted and created again")
    return _event(memory.last_step)


@require_safe
def live_overview(request: HttpRequest) -> HttpResponse:
    """Send the time of the newest change or erasure in any conversation as one event."""
    return _event(newest_change_or_erasure())


def _event(step: int) -> HttpResponse:
    event = f"retry: {POLL_MILLISECONDS}\nevent: step\nid: {step}\ndata: {step}\n\n"
    return HttpResponse(event, content_type="text/event-stream")
