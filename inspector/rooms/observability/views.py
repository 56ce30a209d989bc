"""The page of metrics for Prometheus."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from inspector.access import is_local
from inspector.conf import inspector_configuration
from inspector.rooms.observability.metrics import exposition


@require_safe
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Show the metrics to requests with the metrics token. If no token is configured, show them to
    requests from this machine.

    Answer 401 to other requests.
    """
    if not _may_read(request):
        response = HttpResponse("This page needs the metrics token.\n", "text/plain", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    token = inspector_configuration().METRICS_TOKEN
    if not token:
        return is_local(request)
    return constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}")
