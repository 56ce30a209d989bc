"""For Prometheus: to this machine, or to whoever has the token."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from inspector.access import LOOPBACK
from inspector.observability.metrics import exposition

_FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


@require_safe
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """401 with a wrong token, or none from elsewhere. What a proxy of this machine passes on comes
    from elsewhere.
    """
    if not _may_read(request):
        response = HttpResponse("metrics need their token\n", "text/plain", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    if token:
        offered = request.headers.get("Authorization", "")
        return constant_time_compare(offered, f"Bearer {token}")
    is_passed_on = any(name in request.headers for name in _FORWARDED)
    return request.META.get("REMOTE_ADDR") in LOOPBACK and not is_passed_on
