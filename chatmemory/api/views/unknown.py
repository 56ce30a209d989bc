"""URLs below memories/ and store/ that no route matches, such as those of ids as they are."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from chatmemory.api.problems import ID_NOT_ENCODED


@login_not_required
@csrf_exempt
def unknown(request: HttpRequest, rest: str) -> HttpResponse:
    """Return 404, and no redirect to a URL with a slash.

    The client cuts off what follows `#` and `?` in an id: a redirect would lead it to another
    conversation.
    """
    return ID_NOT_ENCODED.to_http_response()
