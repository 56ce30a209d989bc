"""The settings of a conversation, the default policies of those that get none, and API tokens."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import ChatMemoryError, LongRecount, VersionConflict, queries, services
from chatmemory.access import tokens as api_tokens
from chatmemory.access.actors import actor_of
from chatmemory.access.roles import WRITE
from inspector.conversation.simulation import policy_change
from inspector.forms import DefaultPolicyForm, SettingsForm, TokenForm, first_problem

OUTDATED = "Someone changed these settings meanwhile. Look at the preview, then save again."


@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the settings. A POST shows what those of the form would change, and saves nothing."""
    memory = queries.memory(memory_id)
    data = request.POST if request.method == "POST" else None
    return _settings_page(request, memory, SettingsForm(memory, data))


@require_POST
def change(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Store the policy and the labels, then show the conversation."""
    memory = queries.memory(memory_id)
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
    return render(request, "inspector/settings/settings.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """List the default policies. A POST sets one, or replaces the one with the same prefix."""
    if request.method != "POST":
        return _policies_page(request, DefaultPolicyForm())
    if not request.user.has_perm(WRITE):
        raise PermissionDenied
    form = DefaultPolicyForm(request.POST)
    if not form.is_valid():
        return _policies_page(request, form, first_problem(form))
    try:
        services.set_default_policy(
            form.cleaned_data["beginning"],
            form.cleaned_data["policy"],
            actor=actor_of(request),
        )
    except ChatMemoryError as error:
        return _policies_page(request, form, str(error))
    return redirect("inspector:policies")


@require_POST
def remove_policy(request: HttpRequest) -> HttpResponse:
    services.remove_default_policy(request.POST.get("prefix", ""), actor=actor_of(request))
    return redirect("inspector:policies")


def _policies_page(
    request: HttpRequest, form: DefaultPolicyForm, problem: str = ""
) -> HttpResponse:
    context = {"policies": services.default_policies(), "form": form, "problem": problem}
    status = 422 if problem else 200
    return render(request, "inspector/settings/policies.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """List all tokens, with a form for a new one. After a POST, show the secret, only once."""
    if request.method != "POST":
        return _tokens_page(request, TokenForm(request.user))
    form = TokenForm(request.user, request.POST)
    if not form.is_valid():
        return _tokens_page(request, form, problem=first_problem(form))
    try:
        secret = api_tokens.create_token(**form.options, created_by=actor_of(request))
    except IntegrityError:
        name = form.cleaned_data["name"]
        return _tokens_page(request, form, problem=f"A token named “{name}” already exists.")
    return _tokens_page(request, TokenForm(request.user), secret=secret)


@require_POST
def revoke_token(request: HttpRequest, key: int) -> HttpResponse:
    api_tokens.revoke_token(key, actor=actor_of(request))
    return redirect("inspector:tokens")


def _tokens_page(
    request: HttpRequest, form: TokenForm, problem: str = "", secret: str = ""
) -> HttpResponse:
    context = {
        "tokens": api_tokens.tokens(),
        "form": form,
        "problem": problem,
        "secret": secret,
    }
    return render(
        request, "inspector/accounts/tokens.html", context, status=422 if problem else 200
    )
