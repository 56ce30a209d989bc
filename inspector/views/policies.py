"""The page of default policies: what a conversation gets that is created without a policy."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import ChatMemoryError, services
from chatmemory.access.actors import actor_of
from chatmemory.access.roles import WRITE
from inspector.forms import DefaultPolicyForm, first_problem


@require_http_methods(["GET", "HEAD", "POST"])
def policies(request: HttpRequest) -> HttpResponse:
    """List the default policies. A POST sets one, or replaces the one with the same prefix."""
    if request.method != "POST":
        return _page(request, DefaultPolicyForm())
    if not request.user.has_perm(WRITE):
        raise PermissionDenied
    form = DefaultPolicyForm(request.POST)
    if not form.is_valid():
        return _page(request, form, first_problem(form))
    try:
        services.set_default_policy(
            form.cleaned_data["beginning"],
            form.cleaned_data["policy"],
            actor=actor_of(request),
        )
    except ChatMemoryError as error:
        return _page(request, form, str(error))
    return redirect("inspector:policies")


@require_POST
def remove(request: HttpRequest) -> HttpResponse:
    services.remove_default_policy(request.POST.get("prefix", ""), actor=actor_of(request))
    return redirect("inspector:policies")


def _page(request: HttpRequest, form: DefaultPolicyForm, problem: str = "") -> HttpResponse:
    context = {"policies": services.default_policies(), "form": form, "problem": problem}
    status = 422 if problem else 200
    return render(request, "inspector/policies.html", context, status=status)
