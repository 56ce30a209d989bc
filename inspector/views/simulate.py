"""Try before you add: the composer under a conversation."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatmemory import queries, services
from chatmemory.core.exceptions import ChatMemoryError, MemoryNotFound
from inspector.conversation import ConversationPage
from inspector.forms import DraftForm
from inspector.htmx import render_page_or_fragment
from inspector.simulation import SimulatedPage


@require_POST
def simulate(request: HttpRequest, memory_id: str) -> HttpResponse:
    """The page as it would be with the draft, or with another limit; nothing is saved."""
    form = _form(request, memory_id)
    if not form.is_valid():
        return _refused(request, memory_id, form, form.problem)
    try:
        policy = form.policy(queries.memory(memory_id).policy)
        page = SimulatedPage(memory_id, form.messages, policy)
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return _render(request, page, form)


@require_POST
def add(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Put the limit in force and say the draft, for real; then the live page."""
    form = _form(request, memory_id)
    if not form.is_valid():
        return _refused(request, memory_id, form, form.problem)
    actor = request.user.get_username()
    try:
        policy = form.policy(queries.memory(memory_id).policy)
        services.change_and_add(memory_id, form.messages, policy=policy, actor=actor)
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("conversation", memory_id)
    response = _render(request, ConversationPage(memory_id, at=None, msg=None), DraftForm())
    response["HX-Push-Url"] = reverse("conversation", args=[memory_id])
    return response


def _form(request: HttpRequest, memory_id: str) -> DraftForm:
    try:
        queries.memory(memory_id)
    except MemoryNotFound as error:
        raise Http404(str(error)) from error
    return DraftForm(request.POST)


def _refused(request: HttpRequest, memory_id: str, form: DraftForm, problem: str) -> HttpResponse:
    """The page as it is, the text kept, and why in the composer's verdict line."""
    page = ConversationPage(memory_id, at=None, msg=None)
    response = _render(request, page, form, problem)
    response.status_code = 422
    return response


def _render(
    request: HttpRequest, page: ConversationPage, form: DraftForm, problem: str = ""
) -> HttpResponse:
    return render_page_or_fragment(
        request,
        "inspector/conversation.html",
        "inspector/_conversation.html",
        {"page": page, "form": form, "problem": problem},
    )
