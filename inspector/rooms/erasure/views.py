"""The redaction of a message in the inspector."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from chatmemory.roles import actor_of
from inspector.conversation.links import conversation_url
from inspector.forms.fields import number_in_text
from inspector.rooms.erasure import redaction
from inspector.rooms.erasure.terms import summaries_holding

NUMBER_DIGITS = 18


@require_POST
def redact(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Redact a message, then redirect to the conversation page with this message selected.

    A confirmation page is shown first in these cases:

    - Summaries that replaced the message contain exact terms of the message. The user chooses which
      of these summaries to redact, too.
    - Branches have copies of the message. The user chooses which of these copies to redact, too.
    - A database node does not answer. Then copies on this node are not known.
    """
    copies = redaction.known_copies(memory_id, seq)
    summaries = summaries_holding(memory_id, seq)
    if (copies != [] or summaries) and "confirmed" not in request.POST:
        context = {"memory_id": memory_id, "seq": seq, "copies": copies, "summaries": summaries}
        return render(request, "rooms/erasure/redact.html", context)
    chosen = (number_in_text(text, NUMBER_DIGITS) for text in request.POST.getlist("summary"))
    redaction.redact(
        memory_id,
        seq,
        actor=actor_of(request),
        branches=request.POST.getlist("branch"),
        summaries=[number for number in chosen if number is not None],
    )
    return redirect(conversation_url(memory_id, msg=seq))
