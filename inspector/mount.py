"""Finds the URLs at which a project mounts the pages and the API, and recognizes requests for
them.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.core.handlers.asgi import get_script_prefix
from django.http import HttpRequest
from django.urls import (
    LocalePrefixPattern,
    Resolver404,
    ResolverMatch,
    URLPattern,
    URLResolver,
    get_resolver,
    resolve,
    reverse,
)
from django.utils import translation

from inspector.asgi import Scope
from inspector.conf import inspector_configuration

_NAMESPACES = frozenset({"inspector", "chatmemory"})


def is_own(request: HttpRequest) -> bool:
    """Return whether a request is for a page or the API. With the setting INSPECTOR["WHOLE_SITE"],
    this is True for every request.

    A URL without a route counts if it begins with the path at which the pages or the API are
    mounted, unless this path is `/`.
    """
    if inspector_configuration().WHOLE_SITE:
        return True
    return is_own_route(request.resolver_match or route_of(request), request.path)


def is_own_route(match: ResolverMatch | None, path: str) -> bool:
    """Return whether a path leads to a page or the API. `match` is the route of the path.

    A path without a route counts as well if it begins like the URLs of the pages or of the API (see
    `is_own`).
    """
    if match is None:
        with _language_of(path):
            return is_api(path) or _is_below(path, reverse("inspector:overview"))
    return not _NAMESPACES.isdisjoint(match.app_names)


def is_api(path: str) -> bool:
    """Return whether a path is that of the API or below it."""
    with _language_of(path):
        return _is_below(path, reverse("chatmemory:docs").removesuffix("docs/"))


def needs_account(match: ResolverMatch | None) -> bool:
    """Return whether only people who are signed in can open a route. False for None, which stands
    for a URL without a route.
    """
    return match is not None and getattr(match.func, "login_required", True)


def route_of(request: HttpRequest) -> ResolverMatch | None:
    """Return the route of a request, or None if its URL has no route. This function also works
    before Django has set `request.resolver_match`.
    """
    return _route(request.path_info, getattr(request, "urlconf", None))


def route_at(path: str) -> ResolverMatch | None:
    """Return the route of a path, or None if there is none. This function is for code that runs
    before any middleware. The path must not begin with the script prefix.
    """
    with _language_of(path):
        return _route(path)


def keep_language(request: HttpRequest) -> None:
    """In a project with i18n_patterns, make all links on the requested page begin with the language
    of the page's URL, such as `/de/`. The texts stay English.
    """
    urlconf: Any = getattr(request, "urlconf", settings.ROOT_URLCONF)  # a module, or its name
    if is_language_prefix_patterns_used(urlconf):
        request.urlconf = _urlconf_in(translation.get_language(), urlconf)


def path_in(scope: Scope) -> str:
    """Return the path of an ASGI request without the script prefix."""
    prefix = get_script_prefix(scope).removesuffix("/")
    return str(scope["path"]).removeprefix(prefix)


def _is_below(path: str, root: str) -> bool:
    return root != "/" and path.startswith(root)


def _route(path: str, urlconf: str | None = None) -> ResolverMatch | None:
    try:
        return resolve(path, urlconf)
    except Resolver404:
        return None


def _language_of(path: str) -> translation.override:
    """Return a context with the language at the beginning of a path, else with the active language,
    as in Django's LocaleMiddleware.
    """
    return translation.override(
        translation.get_language_from_path(path) or translation.get_language()
    )


class _Prefix(LocalePrefixPattern):
    """A URL pattern with the prefix of one language, whatever language is active."""

    def __init__(self, language_prefix: str) -> None:
        super().__init__()
        self._language_prefix = language_prefix

    @property
    def language_prefix(self) -> str:
        return self._language_prefix


@lru_cache
def _urlconf_in(language: str | None, urlconf: Any) -> Any:  # a module, or its name
    """Return a copy of a project's URLs in which all language prefixes are those of one
    language.
    """
    resolver = get_resolver(urlconf)

    def in_language(each: URLPattern | URLResolver) -> URLPattern | URLResolver:
        if not isinstance(each.pattern, LocalePrefixPattern):
            return each
        with translation.override(language):
            prefix = _Prefix(each.pattern.language_prefix)
        return URLResolver(prefix, each.url_patterns)  # type: ignore[union-attr]  # only a pattern without patterns of its own has none

    copy = ModuleType(f"{resolver.urlconf_name} in {language}")
    own = {"urlpatterns": [in_language(each) for each in resolver.url_patterns]}
    vars(copy).update(vars(resolver.urlconf_module) | own)
    return copy
