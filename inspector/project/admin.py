"""The management of accounts in Django's admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import ManyToManyField
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest

_ONLY_FOR_SUPERUSERS = ("is_superuser", "is_staff", "groups", "user_permissions")

# In place of Django's two lists between which names are moved: screen readers find no labels there.
_CHECKBOXES: Any = {ManyToManyField: {"widget": CheckboxSelectMultiple}}  # by Django's own types

admin.site.unregister([Group, User])


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    filter_horizontal = ()
    formfield_overrides = _CHECKBOXES


@admin.register(User)
class AccountAdmin(UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Django's admin of users. Only a superuser may give permissions, and only a superuser may
    change or delete other staff and superusers. Without this rule, staff could make themselves
    superusers.
    """

    filter_horizontal = ()
    formfield_overrides = _CHECKBOXES
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(
        self, request: HttpRequest, obj: User | None = None
    ) -> list[str] | tuple[str, ...]:
        own = super().get_readonly_fields(request, obj)
        return own if request.user.is_superuser else (*own, *_ONLY_FOR_SUPERUSERS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)


def _may_touch(request: HttpRequest, account: User | None) -> bool:
    if request.user.is_superuser or account is None or account.pk == request.user.pk:
        return True
    return not (account.is_superuser or account.is_staff)
