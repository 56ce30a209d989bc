"""The composer under a conversation: simulate drafts, add them, or save them as a branch."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from chatmemory import (
    ChatMemoryError,
    DeletionUnfinished,
    InvalidValue,
    MemoryExists,
    queries,
    services,
)
from chatmemory.access.actors import actor_of
from chatmemory.queries import WhatIf
from inspector.conversation import ConversationPage, conversation_url
from inspector.conversation.simulation import trying, writing
from inspector.forms import BranchForm, DraftForm, first_problem
from inspector.htmx import render_page_or_fragment

COUNTED_WHILE_WRITING = 50_000
TOO_LONG_TO_COUNT = "Preview counts a text of this length."
NO_LONGER_KEPT = "This simulation is no longer kept. Its drafts have to be written again."


@require_POST
def simulate(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Keeps the drafts and the limit as a trial, and goes to the page that simulates it."""
    form = DraftForm(request.POST)
    key = ""
    try:
        trial = _trial(form, memory_id)
        if trial.drafts or trial.limit:
            queries.simulate_trial(memory_id, trial, form.step)
            key = services.keep_trial(memory_id, trial.drafts, trial.limit, actor=actor_of(request))
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return redirect(_page_url(memory_id, form, at=form.step, trial=key))


@require_POST
def verdict(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Shows what the text in the composer would do, while it is being written. Keeps nothing."""
    form = DraftForm(request.POST)
    context: dict[str, object] = {}
    if len(request.POST.get("text", "")) > COUNTED_WHILE_WRITING:
        return render(request, "inspector/_writing.html", {"problem": TOO_LONG_TO_COUNT})
    try:
        trial = _trial(form, memory_id)
        if form.cleaned_data["written"]:
            first = form.first_written(trial)
            since = 0 if form.changes_limit else first
            simulation = queries.simulate_trial(memory_id, trial, form.step, since)
            context["writing"] = writing(simulation, first)
        else:
            query = queries.ConversationQuery(at=form.step)
            context["writing"] = trying(queries.simulated_state(memory_id, query, trial))
    except ChatMemoryError as error:
        context["problem"] = "" if form.asks_nothing else str(error)
    context["unknown_role"] = form.unknown_role
    return render(request, "inspector/_writing.html", context)


@require_POST
def add(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Changes the limit and adds the drafts, then goes to the live page."""
    form = DraftForm(request.POST)
    try:
        trial = _trial(form, memory_id)
        services.change_and_add(
            memory_id,
            trial.drafts,
            policy=trial.policy(queries.policy(memory_id)),
            actor=actor_of(request),
        )
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    return redirect(_page_url(memory_id, form))


@require_POST
def branch(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Saves the simulation as a new conversation. The original is not changed.

    HTMX loads the new page as a whole: it follows another conversation.
    """
    form = BranchForm(request.POST)
    try:
        trial = _trial(form, memory_id)
        new_id = form.cleaned_data["new_id"]
        services.branch(
            memory_id,
            new_id,
            trial.drafts,
            at=form.step,
            policy=trial.policy(queries.policy(memory_id, form.step)),
            actor=actor_of(request),
        )
    except (MemoryExists, DeletionUnfinished) as error:
        form.add_error("new_id", str(error))
        return _refused(request, memory_id, form, str(error))
    except ChatMemoryError as error:
        return _refused(request, memory_id, form, str(error))
    url = conversation_url(new_id)
    is_htmx = request.htmx  # type: ignore[attr-defined]
    return HttpResponseClientRedirect(url) if is_htmx else redirect(url)


def _trial(form: DraftForm, memory_id: str) -> WhatIf:
    """Return the trial that the form makes of the one of its page. Raises InvalidValue."""
    if not form.is_valid():
        raise InvalidValue(first_problem(form))
    key = form.cleaned_data["trial"]
    kept = queries.trial(memory_id, key) if key else WhatIf()
    if kept is None:
        raise InvalidValue(NO_LONGER_KEPT)
    return form.revised(kept, queries.policy(memory_id, form.step))


def _page_url(memory_id: str, form: DraftForm, **parameters: int | str | None) -> str:
    """Return the URL of the page with the form's selection and search."""
    chosen = {name: form.cleaned_data[name] for name in ("msg", "find")}
    return conversation_url(memory_id, **parameters, **chosen)


def _refused(request: HttpRequest, memory_id: str, form: DraftForm, problem: str) -> HttpResponse:
    """Show the page with the drafts, the text and the error: in the composer, or at the id."""
    page = _page(memory_id, form)
    is_at_field = bool(page.trial) and "new_id" in form.errors
    context = {"page": page, "form": form, "problem": "" if is_at_field else problem}
    response = render_page_or_fragment(request, "inspector/conversation.html", context)
    response.status_code = 422
    response["HX-Push-Url"] = "false"
    return response


def _page(memory_id: str, form: DraftForm) -> ConversationPage:
    data = form.cleaned_data
    query = queries.ConversationQuery(
        at=form.page_step, msg=data.get("msg"), find=data.get("find", "")
    )
    key = data.get("trial")
    trial = queries.trial(memory_id, key) if key else None
    try:
        state = queries.simulated_state(memory_id, query, trial)
    except ChatMemoryError:
        state = queries.conversation_state(memory_id, queries.ConversationQuery())
    return ConversationPage(state, is_posted=True)
