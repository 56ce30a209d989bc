"""What a request needs: a role and, for a token with a prefix, an id with that prefix."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from chatmemory.access.roles import READ, WRITE
from chatmemory.core.exceptions import MemoryNotFound


class HasRole(BasePermission):
    """Safe methods need READ and others WRITE, unless the view's `needs` name a permission.

    To a token with a prefix, other conversations do not exist.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if not user.is_authenticated:
            return False
        method = request.method or ""
        default = READ if method in SAFE_METHODS else WRITE
        needed = getattr(view, "needs", {}).get(method, default)
        if not user.has_perm(needed):
            raise PermissionDenied(f"you need the permission {needed}")
        memory_id = view.kwargs.get("memory_id", "")
        if "memory_id" in view.kwargs and not memory_id.startswith(prefix_of(request)):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return True


def prefix_of(request: Request) -> str:
    """The prefix of all ids that this caller may see; empty for no restriction."""
    return str(getattr(request.auth, "prefix", ""))


def check_prefix(request: Request, memory_id: str) -> None:
    """Raises PermissionDenied for a new id without the caller's prefix."""
    prefix = prefix_of(request)
    if not memory_id.startswith(prefix):
        raise PermissionDenied(f"this token may only create ids that begin with {prefix!r}")
