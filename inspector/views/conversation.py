"""The page of one conversation at any step, and the composer under it: simulate drafts, add them,
or save them as a branch.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from chatmemory import (
    ChatMemoryError,
    DeletionUnfinished,
    InvalidValue,
    MemoryExists,
    MessageNotFound,
    NoRoomBesidePins,
    queries,
    services,
)
from chatmemory.access.roles import actor_of
from chatmemory.queries import ConversationQuery, WhatIf
from inspector.conversation.covering import Covering
from inspector.conversation.links import conversation_url
from inspector.conversation.page import ConversationPage
from inspector.conversation.simulation import trying, writing
from inspector.display import render_form, render_page_or_fragment
from inspector.forms.actions import CompactForm
from inspector.forms.composer import BranchForm, DraftForm
from inspector.forms.fields import first_problem, number_in_text, searchable
from inspector.shell.room import parameters

PAGE, WRITING = "inspector/conversation/conversation.html", "inspector/conversation/_writing.html"
NUMBER_DIGITS = 18
JUMP = re.compile(rf"#([0-9]{{1,{NUMBER_DIGITS}}})")
COUNTED_WHILE_WRITING = 50_000
TOO_LONG_TO_COUNT = "Preview counts a text of this length."
NO_LONGER_KEPT = "This simulation is no longer kept. Its drafts have to be written again."


@require_safe
def conversation(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a conversation at a step (`?at=`), with a selected message (`?msg=`).

    `?find=` searches for a phrase (`#26` selects that message), `?with=` compares with another
    step and lists the messages above `?past=`, `?before=` and `?after=` page through the history,
    and `?replay=1` computes what would have kept the selected message in a long history. Rooms
    have parameters of their own. `?limit=` replays what was said under that limit from the
    first message on. `?trial=` simulates the drafts and the limit of a trial, `?draft=` selects
    one of its drafts, and `?edit=` is one to be edited. `?time=` leads to the step at a time,
    `?client_id=` to a client's message.
    """
    if request.GET.get("time") or request.GET.get("client_id"):
        return redirect(_sought_url(request, memory_id))
    query, jump = _asked(request)
    key, problem = searchable(request.GET.get("trial", "")), ""
    trial = queries.trial(memory_id, key) if key else None
    if key and trial is None:
        raise Http404("this simulation is no longer kept")
    with queries.one_snapshot():
        try:
            state = queries.simulated_state(memory_id, query, trial)
        except MessageNotFound:
            if not jump:
                raise
            query = replace(query, msg=None, find=jump)
            state = queries.simulated_state(memory_id, query, trial)
        except (InvalidValue, NoRoomBesidePins) as error:  # the policy refuses what is tried
            problem, query = str(error), replace(query, limit=None)
            msg = query.msg if query.msg is not None and query.msg > 0 else None  # no draft
            state = queries.conversation_state(memory_id, replace(query, msg=msg))
        page = ConversationPage(state)
    form = DraftForm.of(trial, _number(request, "edit"))
    return render_page_or_fragment(request, PAGE, {"page": page, "form": form, "problem": problem})


@require_POST
def pin(request: HttpRequest, memory_id: str, seq: int) -> HttpResponse:
    """Pin or unpin a message, then show it."""
    change = services.unpin if request.POST.get("pinned") == "no" else services.pin
    change(memory_id, seq, actor=actor_of(request))
    return redirect(conversation_url(memory_id, msg=seq))


@require_http_methods(["GET", "HEAD", "POST"])
def compact(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the form for a summary. A POST shows what it would do, or with `store` does it.

    What is chosen stays chosen when a message has come or left meanwhile.
    """
    memory, preview = queries.memory(memory_id), None
    form = CompactForm(request.POST if request.method == "POST" else None)
    step, first, last = map(form.chosen, ("step", "first", "last"))
    covering = Covering(queries.outline(memory_id, step), first, last)
    if form.is_valid():
        summary, terms = form.cleaned_data["summary"], form.cleaned_data["append_terms"]
        chosen: Any = {"covering": covering.seqs, "append_terms": terms}
        try:
            if "store" in request.POST:
                services.compact(memory_id, summary, actor=actor_of(request), **chosen)
                return redirect("inspector:conversation", memory_id)
            preview = services.preview_compaction(memory_id, summary, **chosen)
        except ChatMemoryError as error:
            form.add_error(None, str(error))
    if step is not None and not request.htmx:  # type: ignore[attr-defined]
        covering = Covering.of_seqs(queries.outline(memory_id), covering.seqs)
    return render_form(
        request,
        "inspector/conversation/compact.html",
        form,
        memory=memory,
        covering=covering,
        preview=preview,
    )


@require_POST
def simulate(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Keep the drafts and the limit as a trial, and go to the page that simulates it."""
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
    """Show what the text in the composer would do, while it is being written. Keep nothing."""
    form = DraftForm(request.POST)
    context: dict[str, object] = {}
    if len(request.POST.get("text", "")) > COUNTED_WHILE_WRITING:
        return render(request, WRITING, {"problem": TOO_LONG_TO_COUNT})
    try:
        trial = _trial(form, memory_id)
        if form.cleaned_data["written"]:
            first = form.first_written(trial)
            since = 0 if form.changes_limit else first
            simulation = queries.simulate_trial(memory_id, trial, form.step, since)
            context["writing"] = writing(simulation, first)
        else:
            query = ConversationQuery(at=form.step)
            context["writing"] = trying(queries.simulated_state(memory_id, query, trial))
    except ChatMemoryError as error:
        context["problem"] = "" if form.asks_nothing else str(error)
    context["unknown_role"] = form.unknown_role
    return render(request, WRITING, context)


@require_POST
def add(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Change the limit and add the drafts, then go to the live page."""
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
    """Save the simulation as a new conversation. The original is not changed.

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


def _asked(request: HttpRequest) -> tuple[ConversationQuery, str]:
    """Return what the address asks for, and the search that selects a message instead."""
    find = searchable(request.GET.get("find", ""))
    jump, draft = JUMP.fullmatch(find), _number(request, "draft")
    query = ConversationQuery(
        at=_number(request, "at"),
        msg=int(jump[1]) if jump else -draft if draft else _number(request, "msg"),
        before=_number(request, "before"),
        after=_number(request, "after"),
        other=_number(request, "with"),
        past=_number(request, "past"),
        find="" if jump else find,
        replay="replay" in request.GET,
        limit=_number(request, "limit"),
        of_rooms=_of_rooms(request),
    )
    return query, find if jump else ""


def _of_rooms(request: HttpRequest) -> dict[str, str]:
    """Return the parameters that rooms own. Raises Http404 for a number that is none."""
    asked = {name: is_number for name, is_number in parameters().items() if name in request.GET}
    for name, is_number in asked.items():
        if is_number:
            _number(request, name)
    return {name: request.GET[name] for name in asked}


def _sought_url(request: HttpRequest, memory_id: str) -> str:
    """Return the URL of the step that was in force at a time, and of a client's message, which is
    shown where it arrived if no step or time is asked for.
    """
    asked = {name: str(text) for name, text in request.GET.items()}
    time, client_id = asked.pop("time", ""), asked.pop("client_id", "")
    if client_id:
        named = queries.message_by_client_id(memory_id, client_id)
        asked = {"at": str(named.stays[0].entered_step)} | asked | {"msg": str(named.seq)}
    if time:
        asked["at"] = str(queries.step_at_time(memory_id, _moment(time)))
    return f"{conversation_url(memory_id)}?{urlencode(asked)}"


def _moment(text: str) -> datetime:
    """Return a time in the zone of the site unless it names another, as late as it may be meant:
    pages show whole seconds.
    """
    try:
        moment = parse_datetime(text)
        if moment is not None:
            moment = moment if moment.tzinfo else timezone.make_aware(moment)
            return moment.replace(microsecond=moment.microsecond or 999_999).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Http404("in the address, 'time' must be one such as 2026-11-24T14:32Z")


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    number = number_in_text(text, NUMBER_DIGITS)
    if number is None:
        raise Http404(f"in the address, '{name}' must be a number")
    return number


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
    data = form.cleaned_data
    query = ConversationQuery(at=form.page_step, msg=data.get("msg"), find=data.get("find", ""))
    trial = queries.trial(memory_id, data["trial"]) if data.get("trial") else None
    with queries.one_snapshot():
        try:
            state = queries.simulated_state(memory_id, query, trial)
        except ChatMemoryError:
            state = queries.conversation_state(memory_id, ConversationQuery())
        page = ConversationPage(state, is_posted=True)
    is_at_field = bool(page.trial) and "new_id" in form.errors
    context = {"page": page, "form": form, "problem": "" if is_at_field else problem}
    response = render_page_or_fragment(request, PAGE, context)
    response.status_code = 422
    response["HX-Push-Url"] = "false"
    return response
