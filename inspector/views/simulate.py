"""The composer under a conversation: simulate drafts, add them, or save them as a branch."""

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
    """Show the page with the drafts or another limit, without saving anything."""
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
    """Changes the limit and adds the drafts, then shows the live page."""
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _refused(request, memory_id, form, first_problem(form))
    actor = request.user.get_username()
    try:
        policy = form.policy(queries.memory(memory_id).policy)
        services.change_and_add(memory_id, form.messages, policy=policy, actor=actor)
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return _show_live(request, memory_id)


@require_POST
def branch(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Saves the simulation as a new conversation. The original is not changed."""
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
    return _show_live(request, new_id)


def _show_live(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the live page of a conversation."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("conversation", memory_id)
    response = _render(request, _stored(memory_id), DraftForm())
    response["HX-Push-Url"] = reverse("conversation", args=[memory_id])
    return response


def _refused(request: HttpRequest, memory_id: str, form: DraftForm, problem: str) -> HttpResponse:
    """Show the page with the drafts, the text and the error in the composer."""
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
