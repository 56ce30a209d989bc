"""The response headers of pages and the API."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# Pages have no inline code, and load nothing from other sites.
_SECURITY_POLICY = {
    "default-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'self'",
}
_UNUSED_FEATURES = ("camera", "geolocation", "microphone", "payment", "usb")
_HEADERS = {
    "Content-Security-Policy": "; ".join(" ".join(each) for each in _SECURITY_POLICY.items()),
    "X-Frame-Options": "DENY",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _UNUSED_FEATURES),
    "Cache-Control": "no-store",  # pages and exports show conversations
}


def with_headers(
    respond: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Add to each response the headers that it does not have."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = respond(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answer
