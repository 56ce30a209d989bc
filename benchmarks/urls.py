"""The site's URLs, and two for comparison: an empty page and a bare view of the API."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import path
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatmemory.api.guard import BearerTokenAuthentication
from chatmemory.models import AuditEntry
from inspector.project.urls import urlpatterns as of_the_site


def empty(request: HttpRequest) -> HttpResponse:
    """Read the session and its user, and render an empty template."""
    assert request.user.is_authenticated
    return HttpResponse(engines["django"].from_string("").render({}, request))


class Bare(APIView):
    """Inserts one row with the body of the request, for the holder of a token."""

    authentication_classes = (BearerTokenAuthentication,)

    def post(self, request: Request) -> Response:
        entry = AuditEntry.objects.create(at=timezone.now(), action="bare", detail=request.data)
        return Response({"id": entry.pk}, status=201)


urlpatterns = [path("empty/", empty), path("bare/", Bare.as_view()), *of_the_site]
