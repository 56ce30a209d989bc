"""The pages of a conversation's settings, of default policies, and of API tokens."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import ChatMemoryError, LongRecount, VersionConflict, services
from chatmemory.access import tokens as api_tokens
from chatmemory.reading import conversations
from chatmemory.reading.rows import MemoryRow
from chatmemory.roles import WRITE, actor_of
from inspector.conversation.policy_change import PolicyChange
from inspector.display import render_form
from inspector.forms.fields import first_problem
from inspector.overview.causes import forget_headlines
from inspector.rooms.settings import muting
from inspector.rooms.settings.forms import (
    DefaultPolicyForm,
    SettingsForm,
    TokenForm,
    WrittenPolicyForm,
)
from inspector.shell.advice import preview_of

OUTDATED = "Someone changed these settings meanwhile. Look at the new preview, then save again."


@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the settings of a conversation. A POST shows a preview of the changed settings, and
    saves nothing.

    `?limit=` previews the present policy with this limit.
    """
    memory = conversations.memory(memory_id)
    if request.method == "POST":
        return _settings_page(request, memory, SettingsForm(memory, request.POST))
    form = SettingsForm(memory)
    if request.GET.get("limit"):
        form = SettingsForm(memory, form.data_with(limit=request.GET["limit"]))
    return _settings_page(request, memory, form)


@require_POST
def change(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Store the policy and the labels, then show the conversation."""
    memory = conversations.memory(memory_id)
    form = SettingsForm(memory, request.POST)
    if not form.is_valid():
        return _settings_page(request, memory, form)
    if form.is_outdated:
        return _settings_page(request, memory, form, OUTDATED, status=412)
    try:
        services.change(
            memory_id,
            policy=form.policy,
            labels=form.labels,
            actor=actor_of(request),
            expected_version=memory.version,
        )
    except VersionConflict:
        return _settings_page(request, memory, form, OUTDATED, status=412)
    except ChatMemoryError as error:
        return _settings_page(request, memory, form, str(error), status=422)
    return redirect("inspector:conversation", memory_id)


def _settings_page(
    request: HttpRequest,
    memory: MemoryRow,
    form: SettingsForm,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """Show the form. Add a preview if the form is valid, else the first problem."""
    preview, recounted = None, 0
    try:
        if form.is_bound and form.is_valid() and form.policy is not None:
            preview = PolicyChange(memory.id, form.policy, "recount" in request.POST)
    except LongRecount as error:
        recounted = error.messages
    except ChatMemoryError as error:
        problem = problem or str(error)
    problem = problem or first_problem(form)
    context = {
        "memory": memory,
        "form": form,
        "preview": preview,
        "effect": preview_of({memory.id: form.policy}) if preview and not preview.is_none else None,
        "recounted": recounted,
        "problem": problem,
    }
    status = 422 if problem and status == 200 else status
    return render(request, "rooms/settings/settings.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """List the default policies. A POST sets the default policy for all IDs with a given beginning.

    A POST with `show` sets nothing: it shows the options of the chosen kind.
    """
    sent = request.POST if request.method == "POST" else None
    written = WrittenPolicyForm(sent if sent and "policy" in sent else None)
    fields = DefaultPolicyForm(None if written.is_bound else sent)
    form = written if written.is_bound else fields
    if form.is_bound and not request.user.has_perm(WRITE):
        raise PermissionDenied
    context = {"fields": fields, "written": written, "policies": services.default_policies()}
    if "show" in request.POST:
        return render(request, "rooms/settings/policies.html", context)
    if form.is_valid():
        beginning, policy = form.cleaned_data["beginning"], form.cleaned_data["policy"]
        try:
            services.set_default_policy(beginning, policy, actor=actor_of(request))
            return redirect("inspector:policies")
        except ChatMemoryError as error:
            form.add_error(None, str(error))
    return render_form(request, "rooms/settings/policies.html", form, **context)


@require_POST
def remove_policy(request: HttpRequest) -> HttpResponse:
    services.remove_default_policy(request.POST.get("prefix", ""), actor=actor_of(request))
    return redirect("inspector:policies")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """List all tokens, with a form for a new token. After a POST, show the secret of the new token,
    once.
    """
    form, secret = TokenForm(request.user, request.POST if request.method == "POST" else None), ""
    if form.is_valid():
        try:
            secret = api_tokens.create_token(**form.options, created_by=actor_of(request))
            form = TokenForm(request.user)
        except IntegrityError:
            name = form.cleaned_data["name"]
            form.add_error(
                None, f"A token with the name “{name}” already exists. Choose a different name."
            )
    tokens = api_tokens.all_tokens()
    return render_form(request, "rooms/settings/tokens.html", form, tokens=tokens, secret=secret)


@require_POST
def revoke_token(request: HttpRequest, key: int) -> HttpResponse:
    api_tokens.revoke_token(key, actor=actor_of(request))
    return redirect("inspector:tokens")


@require_POST
def mute_cause(request: HttpRequest) -> HttpResponse:
    """Mute a cause of the overview. With `undo`, show the muted cause again. With `dismiss`, hide a
    cause that no conversation has any more.
    """
    change = muting.unmute if "undo" in request.POST else muting.mute
    if "dismiss" in request.POST:
        change = muting.dismiss
    change(request.POST.get("flag", ""), actor_of(request))
    forget_headlines()
    return redirect("inspector:overview")
