"""Where a project mounts the pages and the API, and which requests are for them."""

from __future__ import annotations

from typing import Any

from django.core.handlers.asgi import get_script_prefix
from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve, reverse

from inspector.asgi import Scope
from inspector.conf import configuration

_NAMESPACES = frozenset({"inspector", "chatmemory"})


def is_own(request: HttpRequest) -> bool:
    """Whether a request is for a page or the API, or for an address below them without a route.

    Pages that are mounted at the root own no address without a route: it may be the project's.
    """
    if configuration().WHOLE_SITE:
        return True
    return is_own_route(request.resolver_match or route_of(request), request.path)


def is_own_route(match: ResolverMatch | None, path: str) -> bool:
    """Whether a path is that of a page or the API, or one below them without a route."""
    if match is None:
        return is_api(path) or _is_below(path, reverse("inspector:overview"))
    return not _NAMESPACES.isdisjoint(match.app_names)


def is_api(path: str) -> bool:
    """Whether this is the path of the API, or below it."""
    return _is_below(path, reverse("chatmemory:docs").removesuffix("docs/"))


def needs_account(match: ResolverMatch | None) -> bool:
    """Whether a route is closed to people who are not signed in; what has no route is not."""
    return match is not None and getattr(match.func, "login_required", True)


def route_of(request: HttpRequest) -> ResolverMatch | None:
    """Return the route of a request, before Django has looked it up."""
    return route_at(request.path_info, getattr(request, "urlconf", None))


def route_at(path: str, urlconf: Any = None) -> ResolverMatch | None:
    """Return the route of a path, which does not begin with the prefix of the script."""
    try:
        return resolve(path, urlconf)
    except Resolver404:
        return None


def path_in(scope: Scope) -> str:
    """Return the path of an ASGI request without the prefix of the script."""
    prefix = get_script_prefix(scope).removesuffix("/")
    return str(scope["path"]).removeprefix(prefix)


def _is_below(path: str, root: str) -> bool:
    return root != "/" and path.startswith(root)
