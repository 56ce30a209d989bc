"""The overview of all conversations, and actions on several conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from chatmemory import InvalidValue, MemoryNotFound, services
from chatmemory.formats import render_each
from chatmemory.ledger.validation import is_id
from chatmemory.patterns import declared_pattern
from chatmemory.reading import overview
from chatmemory.reading.conversations import any_memory, memories
from chatmemory.reading.cursors import CursorPage
from chatmemory.reading.feed import newest_change
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.history import whole_history
from chatmemory.reading.overview import OverviewRow, all_memories, overview_page, overview_rows
from chatmemory.reading.rows import MemoryRow
from chatmemory.roles import ERASE, READ, WRITE, actor_of
from chatmemory.streaming import json_list, streamed
from inspector import demo
from inspector.conversation.guide import COOKIE, ENDED, first_stops, is_ended
from inspector.conversation.links import conversation_url
from inspector.display import PageContext, render_page_or_fragment
from inspector.forms.actions import BulkForm, check_chosen
from inspector.forms.fields import first_problem
from inspector.overview.causes import ages_of, current_headlines
from inspector.overview.selection import OverviewQuery, menus, orderings, pager
from inspector.overview.table import Row, current_feed
from inspector.shell import rooms

PAGE_SIZE = 25
YEAR = 365 * 86_400
MOMENT = declared_pattern(r"[0-9]{1,18}")
REQUIRED = {"count": READ, "export": READ, "label": WRITE, "delete": ERASE}


@require_safe
def conversations(request: HttpRequest) -> HttpResponse:
    """Show one page of the conversations that match the filter in the URL. If nothing is stored,
    show how to begin.
    """
    context = _page(OverviewQuery.read(request.GET.dict())) | _feed()
    context["is_empty"] = not context["rows"] and not any_memory()
    if _has_only_examples(request, context):
        context["stops"] = first_stops()
    return render_page_or_fragment(request, "inspector/overview/overview.html", context)


def _has_only_examples(request: HttpRequest, context: PageContext) -> bool:
    """Return whether all stored conversations are examples, and the tour has not been ended."""
    listed = {row.memory.id for row in context["rows"]}
    is_all = len(listed) == context["total"] and not context["query"].parameters
    return bool(listed) and is_all and listed <= demo.ids() and not is_ended(request)


@require_POST
def end_tour(request: HttpRequest) -> HttpResponse:
    """End the tour for new users by setting a cookie in the browser. Redirect to the page given as
    `next`, or to the overview.
    """
    to = request.POST.get("next", "")
    allowed = {request.get_host()}
    is_safe = url_has_allowed_host_and_scheme(to, allowed, require_https=request.is_secure())
    response = redirect(to if is_safe else "inspector:overview")
    response.set_cookie(
        COOKIE, ENDED, YEAR, samesite="Lax", secure=request.is_secure(), httponly=True
    )
    return response


@require_safe
def now(request: HttpRequest) -> HttpResponse:
    """Show the parts of the overview that change live: numbers, rows, and the latest evictions.

    `?id=` names the conversations that the open page lists. They are shown in the same order.
    Evictions after the time `?seen=` (microseconds since 1970) are marked as new.
    """
    query = OverviewQuery.read(request.GET.dict())
    listed = [memory_id for memory_id in request.GET.getlist("id")[:PAGE_SIZE] if is_id(memory_id)]
    moment = MOMENT.fullmatch(request.GET.get("seen", ""))
    context = _page(query, listed) | _feed(int(moment[0]) if moment else None)
    return render(request, "inspector/overview/_now.html", context)


@require_safe
def over_time(request: HttpRequest) -> HttpResponse:
    """Show the table of figures over time for a filtered list of conversations. The overview loads
    the table after the list, because the figures take longer.
    """
    query = OverviewQuery.read(request.GET.dict())
    found = rooms.over_time(query, at_once=True)
    context = {"query": query, "strip": found.strip if found else None}
    return render_page_or_fragment(request, "inspector/overview/over_time.html", context)


@require_POST
def add_demo(request: HttpRequest) -> HttpResponse:
    """Store the example conversations that an empty overview offers.

    Redirect to the example in the form field `example`; without this field, to the overview.
    """
    demo.load()
    example = request.POST.get("example", "")
    if example in demo.ids():
        return redirect("inspector:conversation", example)
    return redirect("inspector:overview")


def _page(query: OverviewQuery, listed: Sequence[str] = ()) -> PageContext:
    """Return the context of the overview. A change with a time after `moment` may be missing in
    it.
    """
    moment = newest_change()
    headlines = current_headlines(moment, query)
    if headlines.counted.filters:
        query = query.with_counts(headlines.counted.filters)
    ages = ages_of(headlines, moment)
    facets = headlines.over_time.facets if headlines.over_time else {}
    total = query.total
    if listed:
        found = CursorPage(overview_rows(listed, query.q), None, None)
    else:
        found = _found(query)
        is_all = found.previous is None and found.next is None
        total = len(found.rows) if is_all and total is None else total
    memories = [row.memory for row in found.rows]
    badges, cells = rooms.badges(memories), rooms.cells(memories)
    beside = rooms.hits_beside(query.q, found.rows)
    return {
        "moment": moment,
        "query": query,
        "total": total,
        "total_at": ages.filters,
        "rows": [
            Row(
                row,
                query,
                badges[row.memory.id],
                cells[row.memory.id],
                beside.get(row.memory.id),
            )
            for row in found.rows
        ],
        "columns": rooms.columns(),
        "is_held": bool(listed),
        "orderings": orderings(),
        "headlines": headlines,
        "menus": menus(query, facets, headlines.counted.stats.flagged, ages),
        **pager(query.parameters, found),
    }


def _found(query: OverviewQuery) -> CursorPage[OverviewRow]:
    """Return the conversations at the cursor of the URL. If the cursor is invalid, return the first
    page.
    """
    page = partial(overview_page, query.which, ordering=query.ordering, size=PAGE_SIZE)
    try:
        return page(cursor=query.cursor)
    except InvalidValue:
        return page(cursor="")


def _feed(last_seen: int | None = None) -> PageContext:
    rows = current_feed(last_seen)
    return {"feed": rows, "newest": max((row.moment for row in rows), default=0)}


@require_safe
def open_conversation(request: HttpRequest) -> HttpResponse:
    """Redirect to the conversation with the ID that somebody typed."""
    memory_id = request.GET.get("id", "").strip()
    if not is_id(memory_id):
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    return redirect(conversation_url(memory_id))


@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    """Label, delete, export or count the chosen conversations. A deletion is first confirmed on a
    page. After a deletion or a label, redirect to the filtered overview.
    """
    form = BulkForm(request.POST)
    if not form.is_valid():
        return _refused(request, form, first_problem(form))
    if not request.user.has_perm(REQUIRED[form.cleaned_data["action"]]):
        raise PermissionDenied
    if form.cleaned_data["action"] == "count":
        outside = overview.outside(_shown(form), form.ids)
        return JsonResponse({"outside": None if outside is None else len(outside)})
    try:
        chosen = _chosen(form)
    except ValidationError as error:
        return _refused(request, form, str(error.message))
    actor = actor_of(request)
    match form.cleaned_data["action"]:
        case "export":
            return _export(request, [row.id for row in chosen])
        case "delete" if not form.cleaned_data["confirmed"]:
            return _ask(request, chosen, form)
        case "delete":
            branches = memories(form.cleaned_data["branches"])
            services.delete_all([row.id for row in (*chosen, *branches)], actor)
        case "label":
            name, value = form.label
            try:
                services.label([row.id for row in chosen], name, value, actor)
            except InvalidValue as error:
                return _refused(request, form, str(error))
    return redirect(reverse("inspector:overview") + form.back)


def _ask(request: HttpRequest, chosen: Sequence[MemoryRow], form: BulkForm) -> HttpResponse:
    """Show the conversations to delete, and ask whether to delete their branches, too."""
    ids = [row.id for row in chosen]
    branches = services.known_branches(ids)
    outside = overview.outside(_shown(form), ids) or set()
    context = {
        "chosen": sorted(chosen, key=lambda row: row.id not in outside),
        "outside": outside,
        "ids": json.dumps(ids),
        "said": sum(row.said_count for row in chosen),
        "branches": branches,
        "branch_ids": json.dumps(branches or []),
        "form": form,
    }
    return render(request, "inspector/overview/delete.html", context)


def _shown(form: BulkForm) -> MemoryFilter:
    """Return the filter of the overview to which the form returns."""
    return OverviewQuery.read(QueryDict(form.back[1:]).dict()).which


def _chosen(form: BulkForm) -> list[MemoryRow]:
    """Return the chosen conversations that still exist. Raises ValidationError."""
    if not form.cleaned_data["every"]:
        return memories(form.ids)
    which = _shown(form)
    check_chosen(overview.count(which))
    return all_memories(which)


def _refused(request: HttpRequest, form: BulkForm, problem: str) -> HttpResponse:
    context = {"problem": problem, "back": form.back}
    return render(request, "inspector/errors/refused.html", context, status=422)


def _export(request: HttpRequest, memory_ids: Sequence[str]) -> HttpResponseBase:
    """Send a file of JSON Lines in LangChain4j's format, one conversation a line. The import can
    read this file.
    """
    response = streamed(request, _exported(memory_ids), "application/jsonl")
    response["Content-Disposition"] = 'attachment; filename="conversations.jsonl"'
    return response


def _exported(memory_ids: Sequence[str]) -> Iterator[str]:
    for memory_id in memory_ids:
        try:
            messages = whole_history(memory_id)
        except MemoryNotFound:  # deleted while this response is sent
            continue
        yield f'{{"id":{json.dumps(memory_id, ensure_ascii=False)},"messages":'
        yield from json_list(render_each(messages, "langchain4j").values)
        yield "}\n"
