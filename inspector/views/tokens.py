"""The page on which API tokens are created and revoked."""

from __future__ import annotations

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory.access import tokens as api_tokens
from chatmemory.access.roles import actor_of
from inspector.forms import TokenForm, first_problem


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """Lists all tokens, with a form for a new one. After a POST it shows the secret, only once."""
    if request.method != "POST":
        return _page(request, TokenForm(request.user))
    form = TokenForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, form, problem=first_problem(form))
    try:
        secret = api_tokens.create_token(**form.options, created_by=actor_of(request))
    except IntegrityError:
        name = form.cleaned_data["name"]
        return _page(request, form, problem=f"A token named “{name}” already exists.")
    return _page(request, TokenForm(request.user), secret=secret)


@require_POST
def revoke(request: HttpRequest, key: int) -> HttpResponse:
    api_tokens.revoke_token(key, actor=actor_of(request))
    return redirect("inspector:tokens")


def _page(
    request: HttpRequest, form: TokenForm, problem: str = "", secret: str = ""
) -> HttpResponse:
    context = {
        "tokens": api_tokens.all_tokens(),
        "form": form,
        "problem": problem,
        "secret": secret,
    }
    return render(
        request, "inspector/accounts/tokens.html", context, status=422 if problem else 200
    )
