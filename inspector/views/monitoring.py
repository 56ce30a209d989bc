"""The health checks of load balancers."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from chatmemory.database_errors import outage
from chatmemory.distribution import unreachable_nodes
from chatmemory.reading.conversations import any_memory, free_disk_space, is_writable
from inspector.conf import inspector_configuration


@require_safe
@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if the database can be read, else 503. The text says if the database is read-only,
    or if the disk is nearly full.

    A cluster with one node down answers 200, because the conversations on other nodes are
    available.
    """
    try:
        unreachable = unreachable_nodes()
        if not unreachable:
            any_memory()
        state = _state()
    except DatabaseError as error:
        found = outage(error)
        reason = str(found or error)
        return HttpResponse(f"{reason}\n", content_type="text/plain", status=503)
    degraded = "".join(f", degraded: node {node}" for node in unreachable)
    return HttpResponse(f"{state}{degraded}\n", content_type="text/plain")


def _state() -> str:
    if not is_writable():
        return "ready, read-only"
    free = free_disk_space()
    least = inspector_configuration().DISK_FREE_MB
    is_full = free is not None and free < least * 2**20
    return f"ready, disk full: less than {least} MB" if is_full else "ready"
