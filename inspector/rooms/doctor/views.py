"""The doctor's pages: conversations that providers in use would reject, by cause."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import ChatMemoryError, InvalidValue
from chatmemory.flag import Shown
from chatmemory.flags import flags
from chatmemory.lint.recognition import recognized
from chatmemory.lint.texts import LONGEST
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.overview import overview_stats
from chatmemory.roles import actor_of
from inspector.display import render_form, render_page_or_fragment
from inspector.overview.causes import forget_headlines
from inspector.overview.common import Everywhere
from inspector.overview.selection import midnight, pager
from inspector.rooms.doctor import words
from inspector.rooms.doctor.answered import AnsweredError
from inspector.rooms.doctor.choosing import choices, choose_providers, forget_providers
from inspector.rooms.doctor.forms import ProvidersForm
from inspector.rooms.doctor.mending import mends
from inspector.rooms.doctor.page import CausePage, DoctorPage
from inspector.rooms.doctor.reads import conversations_by_provider, doctor_page, would_find
from inspector.rooms.doctor.using import ALL
from inspector.rooms.doctor.visit import Visit

PAGE_SIZE = 25


@require_safe
def doctor(request: HttpRequest) -> HttpResponse:
    """Show the causes for which providers would reject windows, or the conversations of one
    cause.
    """
    visit = Visit.read(request.GET.dict())
    if visit.parameters:
        return _cause(request, visit)
    stats = overview_stats(midnight())
    flagged = stats.flagged  # the flags of other rooms
    page = DoctorPage(midnight())
    context = {
        "page": page,
        "mends": mends(
            page.issues.used, midnight(), page.made.is_made, Everywhere(stats.conversations)
        ),
        "conversations": stats.conversations,
        "asked": request.GET.get("flagged", "").removeprefix("refused."),
        "is_empty": lambda: not any_memory(),
        "elsewhere": [
            (flag, flagged[flag.name])
            for flag in flags()
            if Shown.BELOW_DOCTOR in flag.shown and flagged[flag.name]
        ],
    }
    return render_page_or_fragment(request, "rooms/doctor/doctor.html", context)


def _cause(request: HttpRequest, visit: Visit) -> HttpResponse:
    try:
        found = doctor_page(visit.which, cursor=visit.cursor, size=PAGE_SIZE)
    except InvalidValue:
        found = doctor_page(visit.which, size=PAGE_SIZE)
    context = {
        "visit": visit,
        "page": CausePage(visit, found.rows),
        "rows": found.rows,
        **pager(visit.parameters, found),
    }
    return render_page_or_fragment(request, "rooms/doctor/cause.html", context)


@require_safe
def doctor_rules(request: HttpRequest) -> HttpResponse:
    """Show each rule with its sources and its two examples."""
    return render(request, "rooms/doctor/rules.html", {"rules": list(words.shown_rules())})


@require_http_methods(["GET", "HEAD", "POST"])
def error(request: HttpRequest) -> HttpResponse:
    """Show a form for a provider's error message. A POST with an error message also explains the
    error.

    The explanation names the rules that the rejected request broke. If no rule fits, the page says
    whether the prompt was too long or a rate limit was exceeded.
    """
    error = request.POST.get("error", "")[:LONGEST]
    found = [(each, words.place_of(each)) for each in recognized(error)] if error else []
    context = {"error_text": error, "found": found, "answer": AnsweredError(error, bool(found))}
    return render(request, "rooms/doctor/error.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def providers(request: HttpRequest) -> HttpResponse:
    """Show the form of the providers in use.

    A POST stores the choice for all conversations or for a prefix of their IDs, or hides the form
    until tomorrow.
    """
    made = choices()
    if "later" in request.POST:
        request.session["providers_asked_later"] = f"{timezone.localdate()}"
        return redirect("inspector:overview")
    if request.method == "POST":
        form = ProvidersForm(request.POST)
        if form.is_valid():
            try:
                choose_providers(form.cleaned_data["beginning"], form.chosen, actor_of(request))
                forget_headlines()
                return redirect("inspector:doctor")
            except ChatMemoryError as problem:
                form.add_error(None, str(problem))
    else:
        form = ProvidersForm()
    beginning = request.GET.get("beginning", "")
    chosen = made.by_prefix.get(beginning)
    context: dict[str, object] = {
        "made": made,
        "beginning": beginning,
        "rows": words.provider_rows(
            chosen.use if chosen else None, would_find(ALL), conversations_by_provider()
        ),
    }
    return render_form(request, "rooms/doctor/providers.html", form, **context)


@require_POST
def forget(request: HttpRequest) -> HttpResponse:
    """Delete the providers that were chosen for conversations whose IDs begin with a prefix. The
    POST parameter `beginning` has this prefix.
    """
    forget_providers(request.POST.get("beginning", ""), actor_of(request))
    return redirect("inspector:doctor-providers")
