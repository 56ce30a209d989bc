"""The pages that repair one or several conversations, raise limits that are too small, and undo
these changes.
"""

from __future__ import annotations

import json
from dataclasses import replace

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import ChatMemoryError, ChatMessage
from chatmemory.explain import wording
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.lint import PROVIDERS, Finding
from chatmemory.lint.catalog import RULES
from chatmemory.messages.texts import readable_text
from chatmemory.reading import conversations
from chatmemory.reading.clients import ids_of_clients
from chatmemory.reading.rows import MemoryRow
from chatmemory.roles import actor_of
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policy_from_text, text_of_policy
from inspector.conversation.links import conversation_url
from inspector.display import render_form
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.largest import short_windows
from inspector.rooms.doctor.reads import ill_ids, is_unexamined, unexamined
from inspector.rooms.doctor.visit import Visit
from inspector.rooms.doctor.words import provider_names, raised_words
from inspector.rooms.doctor.writes import current_diagnosis
from inspector.rooms.repairs import words, writes
from inspector.rooms.repairs.forms import RepairForm, shown_policies, shown_versions
from inspector.rooms.repairs.policies import Changed, change_back, change_policies, snapped
from inspector.shell.advice import policy_to_set, preview_of

AT_ONCE = 500  # conversations that one request repairs


@require_http_methods(["GET", "HEAD", "POST"])
def repair(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show a preview of the window before and after a repair. A POST repairs the window."""
    memory = conversations.memory(memory_id)
    form = RepairForm(request.POST if request.method == "POST" else _query_values(request, memory))
    provider = form.cleaned_data["provider"] if form.is_valid() else _usual(memory_id)
    by_client = bool(ids_of_clients([memory_id]))
    if form.is_valid() and request.method == "POST" and by_client:
        form.add_error(None, "only your client can change this list")
    elif form.is_valid() and request.method == "POST":
        try:
            made = writes.repair(memory_id, **form.arguments, actor=actor_of(request))
            return redirect(f"{conversation_url(memory_id)}?repaired={made.step}")
        except ChatMemoryError as error:
            form.add_error(None, str(error))
    preview = writes.preview_repair(memory_id, provider)
    remaining: dict[str, list[Finding]] = {}
    for each in preview.refused:
        remaining.setdefault(RULES[each.rule].prevention, []).append(each)
    mended = [each for each in preview.findings if each not in preview.left]
    return render_form(
        request,
        "rooms/repairs/repair.html",
        form,
        memory=memory,
        by_client=by_client,
        preview=preview,
        remaining=remaining,
        mended=mended,
        places=_places(preview),
        undoable=writes.newest_repair(memory_id),
    )


def _usual(memory_id: str) -> str:
    """Return the first provider in use for a conversation, or "openai"."""
    return next(iter(choices().of(memory_id).providers), "openai")


def _query_values(request: HttpRequest, memory: MemoryRow) -> dict[str, object]:
    found = current_diagnosis(memory.id, QUICK_MESSAGES)
    refused_by = found.under(choices().of(memory.id)).refused_by if found else ()
    first = refused_by[0] if refused_by else _usual(memory.id)
    return {"provider": request.GET.get("provider", first), "version": memory.version}


def _places(preview: writes.RepairPreview) -> dict[str, list[dict[str, object]]]:
    """Return the rows of both windows, marked if their messages leave, arrive or move."""
    before = [seq for seq, _ in preview.before]
    after = [seq for seq, _ in preview.after if seq is not None]
    at_fault = {preview.before[at][0] for each in preview.findings for at in each.positions}
    kept = [seq for seq in before if seq in after]
    moved = {seq for seq, other in zip(kept, after, strict=True) if seq != other}
    return {
        "before": [
            {"seq": seq, "text": _line(message), "left": seq not in after, "bad": seq in at_fault}
            for seq, message in preview.before
        ],
        "after": [
            {"seq": seq, "text": _line(message), "new": seq is None, "moved": seq in moved}
            for seq, message in preview.after
        ],
    }


def _line(message: ChatMessage) -> str:
    who = wording.role(message.type, message.has_tool_execution_requests)
    return f"{who}: {readable_text(message)}"


@require_POST
def undo_repair(request: HttpRequest, memory_id: str, step: int) -> HttpResponse:
    """Undo the repair that `step` made, then show the conversation."""
    writes.undo_repair(memory_id, step, actor=actor_of(request))
    return redirect(conversation_url(memory_id))


@require_http_methods(["GET", "HEAD", "POST"])
def repair_many(request: HttpRequest) -> HttpResponse:
    """Show a preview of the repairs of at most 500 conversations. The parameter `rule`, which can
    be repeated, selects conversations that break this rule of a provider. Without `rule`,
    conversations that a provider would reject are selected.

    A POST with the versions of the previewed conversations (field `versions`) repairs these
    conversations. With the field `snap`, their policies also get the option *start at a user
    message*. `snap` only has an effect for a `rule` about the beginning of the window.
    """
    asked = request.POST or request.GET
    visit = Visit.read(asked.dict())
    provider = visit.provider or next(iter(choices().everywhere.providers), "openai")
    confirmed = "versions" in request.POST
    versions = shown_versions(request.POST["versions"], AT_ONCE) if confirmed else None
    ids = _mendable(asked, visit) if versions is None else list(versions)
    ids = without_clients(ids)
    actor = actor_of(request)
    made = writes.repair_all(
        ids,
        provider,
        reason=request.POST.get("reason", ""),
        actor=actor,
        dry_run=not confirmed,
        versions=versions,
    )
    can_snap = "begin_with_user" in RULES[visit.rule].repairs if visit.rule else False
    snaps = snapped(made.done) if can_snap else {}
    is_snapping = confirmed and "snap" in request.POST
    changed = change_policies(snaps, actor) if is_snapping else Changed({}, {})
    context = {
        "visit": visit,
        "provider": provider_names([provider]),
        "repairs": made,
        "confirmed": confirmed,
        "is_unexamined": not ids and is_unexamined(unexamined().count()),
        "versions": json.dumps(made.versions),
        "steps": json.dumps(made.steps),
        "policies": json.dumps(changed.before),
        "example": _example(made, provider) if not confirmed else None,
        "sums": [] if confirmed else words.repair_sums(made),
        "preview": preview_of(snaps) if snaps and not confirmed else None,
        "can_snap": bool(snaps),
        "snapped": len(changed.before),
        "most": AT_ONCE if len(ids) == AT_ONCE else 0,
        "back": f"{reverse('inspector:doctor')}?{urlencode(visit.parameters)}",
    }
    return render(request, "rooms/repairs/repaired.html", context)


def _mendable(asked: QueryDict, visit: Visit) -> list[str]:
    """Return the IDs of the conversations that break one of the rules in the form or the URL."""
    rules = [rule for rule in asked.getlist("rule") if rule in RULES] or [visit.rule]
    found = [ill_ids(replace(visit.which, rule=rule), AT_ONCE) for rule in rules]
    return list(dict.fromkeys(id for ids in found for id in ids))[:AT_ONCE]


@require_http_methods(["GET", "HEAD", "POST"])
def raise_limits(request: HttpRequest) -> HttpResponse:
    """Show the conversations (at most 500) whose limit is smaller than their largest turn, each
    with a policy to set instead.

    Usually, this policy has a higher limit. If sending everything is better than the higher limit,
    the policy sends everything (see `Option.dominates`). A POST with the shown `policies` sets
    them.
    """
    if "policies" in request.POST:
        return _made_room(request)
    found = short_windows(most=AT_ONCE)
    raised: dict[str, Policy | None] = {each.memory_id: each.raised for each in found}
    preview = preview_of(raised, spares_dominated=True)
    if preview:
        found = [each for each in found if each.memory_id not in preview.unread]
    chosen = raised | dict(preview.policies if preview else {})
    to_set = {each.memory_id: policy_to_set(chosen[each.memory_id], each.policy) for each in found}
    shown = {
        each.memory_id: (text_of_policy(to_set[each.memory_id]), each.version) for each in found
    }
    context = {
        "found": [(each, raised_words(each, to_set[each.memory_id])) for each in found],
        "policies": json.dumps(shown),
        "preview": preview,
        "most": AT_ONCE if len(found) == AT_ONCE else 0,
    }
    return render(request, "rooms/repairs/raise.html", context)


def _made_room(request: HttpRequest) -> HttpResponse:
    """Set the policies that the page has shown, and show the result."""
    shown = shown_policies(request.POST["policies"], AT_ONCE)
    policies = {memory_id: policy_from_text(text) for memory_id, (text, _) in shown.items()}
    versions = {memory_id: version for memory_id, (_, version) in shown.items()}
    changed = change_policies(policies, actor_of(request), versions)
    context = {"changed": changed, "policies": json.dumps(changed.before)}
    return render(request, "rooms/repairs/raised.html", context)


def without_clients(memory_ids: list[str]) -> list[str]:
    """Return the given IDs, except those of conversations whose client decides what is in memory.
    The next list that such a client sends would undo a repair.
    """
    theirs = ids_of_clients(memory_ids)
    return [memory_id for memory_id in memory_ids if memory_id not in theirs]


def _example(made: writes.Repairs, provider: str) -> dict[str, object] | None:
    """Return the first repair message by message, as an example; None without repairs."""
    first = next(iter(made.done), None)
    if first is None:
        return None
    preview = writes.preview_repair(first, provider)
    return {"id": first, "provider": PROVIDERS[provider], **_places(preview)}


@require_POST
def undo_many(request: HttpRequest) -> HttpResponse:
    """Undo the repairs and policy changes of one POST to `repair_many` or `raise_limits`. The
    fields `steps` and `policies` list them by conversation ID. Each undo is a further step of its
    conversation.
    """
    steps = shown_versions(request.POST.get("steps", "{}"), AT_ONCE)
    policies = shown_policies(request.POST.get("policies", "{}"), AT_ONCE)
    actor = actor_of(request)
    back = change_back(policies, actor)
    refused = dict(back.refused)
    undone = 0
    for memory_id, step in steps.items():
        try:
            writes.undo_repair(memory_id, step, actor=actor)
            undone += 1
        except ChatMemoryError as error:
            refused[memory_id] = str(error)
    context = {"undone": undone, "changed": len(back.before), "refused": refused}
    return render(request, "rooms/repairs/undone.html", context)
