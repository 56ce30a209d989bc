"""The page of the glossary, which needs no account."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from inspector.shell.glossary import glossary as terms


@require_safe
@login_not_required
def glossary(request: HttpRequest) -> HttpResponse:
    """Show each term with its meaning."""
    return render(request, "inspector/glossary.html", {"terms": terms()})
