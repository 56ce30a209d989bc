"""The requests of the composer: simulate drafts, add them, or save them as a branch."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from chatmemory import ChatMemoryError, DeletionUnfinished, InvalidValue, MemoryExists, services
from chatmemory.reading import conversations
from chatmemory.roles import actor_of
from chatmemory.snapshots import one_snapshot
from inspector.conversation.links import conversation_url
from inspector.conversation.page import page_of
from inspector.display import render_page_or_fragment
from inspector.forms.fields import first_problem
from inspector.rooms.simulation import branches
from inspector.rooms.simulation.composer import BranchForm, DraftForm
from inspector.rooms.simulation.presenting import trying, writing
from inspector.rooms.simulation.showing import simulated_state
from inspector.rooms.simulation.trials import WhatIf, keep_trial, simulate_trial, trial
from inspector.shell.state import ConversationQuery

PAGE, WRITING = "inspector/conversation/conversation.html", "rooms/simulation/_writing.html"
COUNTED_WHILE_WRITING = 50_000
TOO_LONG_TO_COUNT = "Press Preview to count a text of this length."
NO_LONGER_KEPT = "This simulation has expired. Write its drafts again."


@require_POST
def simulate(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Store drafts and limit as a trial, and redirect to the page that shows this trial."""
    form = DraftForm(request.POST)
    key = ""
    try:
        trial = _trial(form, memory_id)
        if trial.drafts or trial.limit:
            simulate_trial(memory_id, trial, form.step)
            key = keep_trial(memory_id, trial.drafts, trial.limit, actor=actor_of(request))
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return redirect(_page_url(memory_id, form, at=form.step, trial=key))


@require_POST
def verdict(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show what the text in the composer would do to memory, while somebody writes this text.
    Nothing is stored.
    """
    form = DraftForm(request.POST)
    context: dict[str, object] = {}
    if len(request.POST.get("text", "")) > COUNTED_WHILE_WRITING:
        return render(request, WRITING, {"problem": TOO_LONG_TO_COUNT})
    try:
        trial = _trial(form, memory_id)
        if form.cleaned_data["written"]:
            first = form.first_written(trial)
            since = 0 if form.changes_limit else first
            simulation = simulate_trial(memory_id, trial, form.step, since)
            context["writing"] = writing(simulation, first)
        else:
            query = ConversationQuery(at=form.step)
            context["writing"] = trying(simulated_state(memory_id, query, trial), trial)
    except ChatMemoryError as error:
        context["problem"] = "" if form.asks_nothing else str(error)
    context["unknown_role"] = form.unknown_role
    return render(request, WRITING, context)


@require_POST
def add(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Set the limit and add the drafts to the conversation. Then redirect to the live page."""
    form = DraftForm(request.POST)
    try:
        trial = _trial(form, memory_id)
        services.change_and_add(
            memory_id,
            trial.drafts,
            policy=trial.policy(conversations.policy(memory_id)),
            actor=actor_of(request),
        )
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return redirect(_page_url(memory_id, form))


@require_POST
def branch(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Save the simulation as a new conversation. The original is not changed.

    With HTMX, the browser loads the new page completely, so that the old page's live updates end.
    """
    form = BranchForm(request.POST)
    try:
        trial = _trial(form, memory_id)
        new_id = form.cleaned_data["new_id"]
        branches.branch(
            memory_id,
            new_id,
            trial.drafts,
            at=form.step,
            policy=trial.policy(conversations.policy(memory_id, form.step)),
            actor=actor_of(request),
        )
    except (MemoryExists, DeletionUnfinished) as error:
        form.add_error("new_id", str(error))
        return _refused(request, memory_id, form, str(error))
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    url = conversation_url(new_id)
    is_htmx = request.htmx  # type: ignore[attr-defined]  # set by InspectorMiddleware
    return HttpResponseClientRedirect(url) if is_htmx else redirect(url)


def _trial(form: DraftForm, memory_id: str) -> WhatIf:
    """Return the page's trial with the changes of the form. Raises InvalidValue."""
    if not form.is_valid():
        raise InvalidValue(first_problem(form))
    key = form.cleaned_data["trial"]
    kept = trial(memory_id, key) if key else WhatIf()
    if kept is None:
        raise InvalidValue(NO_LONGER_KEPT)
    return form.revised(kept, conversations.policy(memory_id, form.step))


def _page_url(memory_id: str, form: DraftForm, **parameters: int | str | None) -> str:
    """Return the URL of the page that sent the form, with the same selection, and with the given
    parameters.
    """
    return conversation_url(memory_id, **parameters, msg=form.cleaned_data["msg"], **form.kept)


def _refused(request: HttpRequest, memory_id: str, form: DraftForm, problem: str) -> HttpResponse:
    """Show the page with the drafts, the text and the error. An error about the ID is shown beside
    the ID.
    """
    data = form.cleaned_data
    query = ConversationQuery(at=form.page_step, msg=data.get("msg"), room_parameters=form.kept)
    kept = trial(memory_id, data["trial"]) if data.get("trial") else None
    is_at_field = kept is not None and "new_id" in form.errors
    read = {"trial": kept, "form": form, "problem": "" if is_at_field else problem}
    with one_snapshot():
        try:
            page = page_of(memory_id, query, read, is_posted=True)
        except ChatMemoryError:
            read |= {"trial": None, "problem": problem}
            page = page_of(memory_id, ConversationQuery(), read, is_posted=True)
    response = render_page_or_fragment(request, PAGE, {"page": page})
    response.status_code = 422
    response["HX-Push-Url"] = "false"
    return response
