"""Registers conversations, API tokens and the audit trail on Django's admin site, read-only."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from chatmemory.models import ApiToken, AuditEntry, Memory


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def page_of(memory_id: str) -> str | None:
    """Return the URL of a conversation's page in the inspector, or None if the inspector is not
    installed.
    """
    try:
        return reverse("inspector:conversation", args=[memory_id])
    except NoReverseMatch:
        return None


@admin.register(Memory)
class MemoryAdmin(ReadOnly):
    list_display = ("id", "policy_kind", "policy_limit", "said_count", "updated_at")
    search_fields = ("id",)
    ordering = ("-updated_at",)

    def view_on_site(self, obj: Memory) -> str | None:
        return page_of(obj.pk)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("name", "role", "prefix", "created_at", "last_used_at", "expires_at")
    exclude = ("digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "action", "memory_id", "actor")
    search_fields = ("memory_id", "actor")
    ordering = ("-at",)

    def view_on_site(self, obj: AuditEntry) -> str | None:
        return page_of(obj.memory_id) if obj.action == AuditEntry.Action.REDACT else None
