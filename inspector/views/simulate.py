"""Try before you add: the composer under a conversation."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatmemory import ChatMemoryError, ChatMessage, queries, services
from inspector.conversation import ConversationPage
from inspector.forms import DraftForm, first_problem
from inspector.htmx import render_page_or_fragment


@require_POST
def simulate(request: HttpRequest, memory_id: str) -> HttpResponse:
    """The page as it would be with the drafts, or with another limit; nothing is saved."""
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _refused(request, memory_id, form, first_problem(form))
    try:
        policy = form.policy(queries.outline(memory_id, form.step).policy)
        state = queries.simulated_state(memory_id, form.messages, policy, form.step)
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return _render(request, ConversationPage(state), form.next())


@require_POST
def add(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Put the limit in force and say the drafts, for real; then the live page."""
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _refused(request, memory_id, form, first_problem(form))
    actor = request.user.get_username()
    try:
        policy = form.policy(queries.memory(memory_id).policy)
        services.change_and_add(memory_id, form.messages, policy=policy, actor=actor)
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return _go(request, memory_id)


@require_POST
def branch(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Save the simulation as a new conversation; the one it began from stays as it is."""
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _refused(request, memory_id, form, first_problem(form))
    new_id = form.cleaned_data["new_id"]
    try:
        policy = form.policy(queries.outline(memory_id, form.step).policy)
        services.branch(
            memory_id,
            new_id,
            form.messages,
            at=form.step,
            policy=policy,
            actor=request.user.get_username(),
        )
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return _go(request, new_id)


def _go(request: HttpRequest, memory_id: str) -> HttpResponse:
    """To the live end of a conversation."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("conversation", memory_id)
    response = _render(request, _stored(memory_id), DraftForm())
    response["HX-Push-Url"] = reverse("conversation", args=[memory_id])
    return response


def _refused(request: HttpRequest, memory_id: str, form: DraftForm, problem: str) -> HttpResponse:
    """The page with the drafts so far, the text kept, and why in the composer's verdict line."""
    data = form.cleaned_data
    response = _render(request, _page(memory_id, data.get("drafts"), data.get("at")), form, problem)
    response.status_code = 422
    return response


def _page(memory_id: str, drafts: list[ChatMessage] | None, at: int | None) -> ConversationPage:
    try:
        if drafts:
            return ConversationPage(queries.simulated_state(memory_id, drafts, None, at))
        return _stored(memory_id, at)
    except ChatMemoryError:
        return _stored(memory_id)


def _stored(memory_id: str, at: int | None = None) -> ConversationPage:
    query = queries.ConversationQuery(at=at)
    return ConversationPage(queries.conversation_state(memory_id, query))


def _render(
    request: HttpRequest, page: ConversationPage, form: DraftForm, problem: str = ""
) -> HttpResponse:
    return render_page_or_fragment(
        request,
        "inspector/conversation.html",
        "inspector/_conversation.html",
        {"page": page, "form": form, "problem": problem},
    )
