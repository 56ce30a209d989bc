"""The settings of a conversation: its policy, with a preview of the change, and its labels."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import ChatMemoryError, LongRecount, VersionConflict, queries, services
from chatmemory.access.actors import actor_of
from inspector.conversation.policy_change import policy_change
from inspector.forms import SettingsForm, first_problem

OUTDATED = "Someone changed these settings meanwhile. Look at the preview, then save again."


@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the settings. A POST shows what those of the form would change, and saves nothing."""
    memory = queries.memory(memory_id)
    data = request.POST if request.method == "POST" else None
    return _render(request, memory, SettingsForm(memory, data))


@require_POST
def change(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Store the policy and the labels, then show the conversation."""
    memory = queries.memory(memory_id)
    form = SettingsForm(memory, request.POST)
    if not form.is_valid():
        return _render(request, memory, form)
    if form.is_outdated:
        return _render(request, memory, form, OUTDATED, status=412)
    try:
        services.change(
            memory_id,
            policy=form.policy,
            labels=form.labels,
            actor=actor_of(request),
            expected_version=memory.version,
        )
    except VersionConflict:
        return _render(request, memory, form, OUTDATED, status=412)
    except ChatMemoryError as error:
        return _render(request, memory, form, str(error), status=422)
    return redirect("inspector:conversation", memory_id)


def _render(
    request: HttpRequest,
    memory: queries.MemoryRow,
    form: SettingsForm,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """Show the form, with a preview if it is valid, and with the first problem otherwise."""
    preview, recounted = None, 0
    try:
        if form.is_bound and form.is_valid() and form.policy is not None:
            preview = policy_change(memory.id, form.policy, "recount" in request.POST)
    except LongRecount as error:
        recounted = error.messages
    except ChatMemoryError as error:
        problem = problem or str(error)
    problem = problem or first_problem(form)
    context = {
        "memory": memory,
        "form": form,
        "preview": preview,
        "recounted": recounted,
        "problem": problem,
    }
    status = 422 if problem and status == 200 else status
    return render(request, "inspector/settings.html", context, status=status)
