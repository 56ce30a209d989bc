"""What a request needs, asked in one place: a role, and for some tokens the beginning of an id."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from chatmemory.access.roles import READ, WRITE
from chatmemory.core.exceptions import MemoryNotFound


class HasRole(BasePermission):
    """Reading for safe methods, writing for the others, unless the view's `needs` say otherwise.

    A conversation outside a token's prefix is unknown to it.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if not user.is_authenticated:
            return False
        method = request.method or ""
        default = READ if method in SAFE_METHODS else WRITE
        needed = getattr(view, "needs", {}).get(method, default)
        if not user.has_perm(needed):
            raise PermissionDenied(f"this needs the permission {needed}")
        memory_id = view.kwargs.get("memory_id", "")
        if "memory_id" in view.kwargs and not memory_id.startswith(prefix_of(request)):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return True


def prefix_of(request: Request) -> str:
    """What every id begins with that this caller knows of; empty for all."""
    return str(getattr(request.auth, "prefix", ""))


def check_prefix(request: Request, memory_id: str) -> None:
    """Raises PermissionDenied where a new id lies outside."""
    prefix = prefix_of(request)
    if not memory_id.startswith(prefix):
        raise PermissionDenied(f"this token is for ids that begin with {prefix!r}")
