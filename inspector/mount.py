"""Where a project mounts the pages and the API, and which requests are for them."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from inspector.conf import configuration

_NAMESPACES = frozenset({"inspector", "chatmemory"})


def is_own(request: HttpRequest) -> bool:
    """Whether a request is for a page or the API, or for an address below them without a route.

    Pages that are mounted at the root own no address without a route: it may be the project's.
    """
    if configuration().WHOLE_SITE:
        return True
    match = request.resolver_match or _match(request)
    if match is None:
        return is_api(request.path) or _is_below(request.path, reverse("inspector:overview"))
    return not _NAMESPACES.isdisjoint(match.app_names)


def is_api(path: str) -> bool:
    """Whether this is the path of the API, or below it."""
    return _is_below(path, reverse("chatmemory:docs").removesuffix("docs/"))


def _match(request: HttpRequest) -> ResolverMatch | None:
    try:
        return resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return None


def _is_below(path: str, root: str) -> bool:
    return root != "/" and path.startswith(root)
